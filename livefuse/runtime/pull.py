"""Fetching a model over HTTP: resumed where it broke off, and used only when its digest is right.

No address comes with livefuse: the user gives one. With models.offline no connection is opened.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlsplit

from livefuse.errors import ModelError
from livefuse.redact import redact_text, redact_url
from livefuse.runtime.install import ask_licence, import_file
from livefuse.runtime.registry import compute_sha256

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from livefuse.config import ModelsConfig
    from livefuse.runtime.install import Accept, Brought
    from livefuse.runtime.registry import Model, ModelRegistry

    Progress = Callable[[int, int], None]

_CHUNK: Final = 1 << 18
_TIMEOUT_S: Final = 30.0
_PARTIAL_CONTENT: Final = 206
_RANGE_REFUSED: Final = 416
_SCHEMES: Final = ("http", "https")
_DIGEST_LENGTH: Final = 64


class Order(NamedTuple):
    """What is asked for: a model, and perhaps where it is and its digest, lower case."""

    name: str
    url: str = ""
    sha256: str = ""


def pull_model(
    registry: ModelRegistry, config: ModelsConfig, order: Order, accept: Accept, progress: Progress
) -> Brought:
    """Fetch a model, check it, and bring it among the others; do nothing when it is there.

    `progress` is told bytes done and in all (0: not known). A download that breaks off leaves a
    .part file that the next one goes on from; one whose digest is wrong is kept as .rejected.

    Raises:
        ModelError: offline, no address or digest, the server failed, or the file is not it.
    """
    model = registry.get_model(order.name)
    if model.embedded:
        raise ModelError(f"{model.name} comes with livefuse", hint="just use it")
    if config.offline:
        raise ModelError(
            f"{model.name} is not fetched: models.offline is set",
            hint="livefuse models import FILE  works without a network",
        )
    expected = _find_digests(registry, model, order)
    own, part = registry.folder / model.file, registry.folder / f".{model.file}.part"
    if own.is_file() and compute_sha256(own) in expected:
        brought = import_file(registry, own, accept, name=model.name, file=model.file)
        return brought._replace(words="there already")
    url = _find_url(model, config, order)
    ask_licence(registry, model, accept)  # before the wait, not behind it
    _fetch(url, part, progress)
    _check_digest(part, expected, url)
    brought = import_file(
        registry, part, accept, name=model.name, file=model.file, origin=redact_url(url)
    )
    part.unlink()
    return brought


def _find_url(model: Model, config: ModelsConfig, order: Order) -> str:
    mirror = f"{config.mirror.rstrip('/')}/{quote(model.file)}" if config.mirror else ""
    url = order.url or model.url or mirror
    if not url:
        raise ModelError(
            f"no address for {model.name}: livefuse names none",
            hint=f"find the file at {model.source} and say --from URL, or set models.mirror",
        )
    if urlsplit(url).scheme not in _SCHEMES:
        raise ModelError(
            f"cannot fetch {redact_url(url)}", hint="give an http:// or https:// address"
        )
    return url


def _find_digests(registry: ModelRegistry, model: Model, order: Order) -> tuple[str, ...]:
    """Return what the file's SHA-256 may be: the one asked for, else those that are known."""
    if order.sha256:
        digest = order.sha256.lower()
        if len(digest) != _DIGEST_LENGTH or set(digest) - set("0123456789abcdef"):
            raise ModelError("--sha256 is not a SHA-256", hint="it has 64 digits 0-9 and a-f")
        return (digest,)
    row = registry.get_installed(model.name)
    known = (*model.published, *((row.sha256,) if row else ()))
    if not known:
        raise ModelError(
            f"the SHA-256 of {model.name} is not known",
            hint="give the one that its publisher names with --sha256",
        )
    return known


def _fetch(url: str, part: Path, progress: Progress) -> None:
    """Fetch `url` into `part`, going on behind what is there.

    Raises:
        ModelError: it failed; what came is kept.
    """
    have = part.stat().st_size if part.is_file() else 0
    try:
        try:
            _receive(url, part, have, progress)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != _RANGE_REFUSED or not have:
                raise
            if error.headers.get("Content-Range") != f"bytes */{have}":  # not all of it yet
                _receive(url, part, 0, progress)
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: a bad header
        have = part.stat().st_size if part.is_file() else 0
        raise ModelError(
            f"cannot fetch {redact_url(url)} ({redact_text(str(error) or 'no answer', (url,))})",
            hint=f"{have} bytes are kept; run it again to go on" if have else "check the address",
        ) from None


def _receive(url: str, part: Path, have: int, progress: Progress) -> None:
    headers = {"Accept-Encoding": "identity", "User-Agent": "livefuse"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http and https only, see _find_url
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 - likewise
        goes_on = response.status == _PARTIAL_CONTENT
        done = have if goes_on else 0
        length = int(response.getheader("Content-Length") or 0)
        total = done + length if length else 0
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab" if goes_on else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                progress(done, total)
    if total and done < total:
        raise OSError(f"it ended after {done} of {total} bytes")


def _check_digest(part: Path, expected: tuple[str, ...], url: str) -> None:
    digest = compute_sha256(part)
    if digest in expected:
        return
    kept = part.with_suffix(".rejected")
    part.replace(kept)
    raise ModelError(
        f"what {redact_url(url)} gave has SHA-256 {digest}, expected {' or '.join(expected)}",
        hint=f"it is kept as {kept}; try again, or ask its publisher for the digest",
    )
