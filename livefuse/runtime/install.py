"""Bringing a file among the models: recognised, its licence accepted, copied whole, noted.

A file is never seen half written under its name: it is copied beside it and renamed.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import shutil
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from livefuse.errors import LivefuseError, ModelError
from livefuse.runtime.installed import Installed, write_installed
from livefuse.runtime.recognise import read_facts, recognise
from livefuse.runtime.registry import compute_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from livefuse.runtime.registry import Model, ModelRegistry

    Accept = Callable[[Model], bool]

_CHUNK: Final = 1 << 20
_MAX_MEMBER: Final = 4 << 30  # bytes of one file in an archive
_SUFFIX: Final = ".onnx"


class Brought(NamedTuple):
    """What became of a file: `model` is None when it was left out; `words` say what happened."""

    file: str
    model: Model | None
    words: str
    failed: bool = False


def import_path(
    registry: ModelRegistry, path: Path, accept: Accept, *, name: str = ""
) -> Iterator[Brought]:
    """Import a model file, or each of a folder or .zip (an insightface pack); yield what became.

    `accept` is asked for each restricted licence. `name` says which model a single file is.

    Raises:
        ModelError: a single file cannot be used; of many, each says so in its `Brought`.
    """
    if path.is_dir():
        files = sorted(path.glob(f"*{_SUFFIX}"))
        if not files:
            raise ModelError(f"no {_SUFFIX} file in {path}", hint="name the folder of a pack")
        for file in files:
            yield _try_import(registry, file, file.name, accept)
    elif zipfile.is_zipfile(path):
        yield from _import_archive(registry, path, accept)
    else:
        yield import_file(registry, path, accept, name=name)


def import_file(
    registry: ModelRegistry,
    path: Path,
    accept: Accept,
    *,
    name: str = "",
    file: str = "",
    origin: str = "",
) -> Brought:
    """Import the model file at `path`; `file` is the name it had before, `origin` where from.

    Raises:
        ModelError: unreadable, truncated, not a known model, or the licence was not accepted.
    """
    file = file or path.name
    if not path.is_file():
        raise ModelError(f"no such file: {path}", hint="name a model file, a pack's folder or .zip")
    digest = compute_sha256(path)
    for model in registry.list_models():
        if model.sha256 == digest and model.embedded:
            return Brought(file, model, "comes with livefuse already")
        if digest in model.published:
            name, file = model.name, model.file
    found = recognise(read_facts(path), registry.list_models(), name, file)
    if found is None:
        return Brought(file, None, "left out: livefuse has no use for it")
    acceptance = ask_licence(registry, found, accept)
    replaced = _copy_file(path, registry.folder / found.file, digest)
    size, origin = path.stat().st_size, origin or str(path.resolve())
    note_model(registry, found, digest, size, origin, acceptance)
    words = "replaced the one that was there" if replaced else "imported"
    if found.published and digest not in found.published:
        words += f"; SHA-256 {digest} is not the published file's"
    return Brought(file, found, words)


def accept_model(registry: ModelRegistry, name: str) -> Installed:
    """Note that the licence of the present model `name` was accepted, and its digest.

    For files that lie in a pack, or were put among the models by hand.

    Raises:
        ModelError: unknown, missing or unreadable.
    """
    model = registry.get_model(name)
    path = registry.find_path(name)
    if path is None:
        raise ModelError(f"there is no file of {name} yet", hint="livefuse models import FILE")
    if model.embedded:
        raise ModelError(f"{name} comes with livefuse under {model.licence}", hint="just use it")
    try:
        digest, size = compute_sha256(path), path.stat().st_size
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ModelError(f"cannot read {path} ({reason})", hint="check the file's rights") from None
    return note_model(registry, model, digest, size, str(path), get_acceptance())


def note_model(
    registry: ModelRegistry,
    model: Model,
    digest: str,
    size: int,
    origin: str,
    acceptance: tuple[str, str],
) -> Installed:
    """Write the row of `model`; `acceptance` is who and when, or empty.

    Raises:
        ModelError: the folder cannot be written.
    """
    row = Installed(
        name=model.name,
        file=model.file,
        sha256=digest,
        bytes=size,
        licence=model.licence,
        origin=origin,
        imported_at=_get_date(),
        accepted_by=acceptance[0],
        accepted_at=acceptance[1],
    )
    write_installed(registry.folder, row)
    return row


def get_acceptance() -> tuple[str, str]:
    """Return who accepts, the local user, and when."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user without a name
        user = f"uid {os.getuid()}"
    return user, _get_date()


def ask_licence(registry: ModelRegistry, model: Model, accept: Accept) -> tuple[str, str]:
    """Return who accepted the licence of `model` and when; empty when nobody need.

    Raises:
        ModelError: it was not accepted.
    """
    if not model.restricted:
        return "", ""
    known = registry.get_installed(model.name)
    if known is not None and known.accepted and known.licence == model.licence:
        return known.accepted_by, known.accepted_at
    if accept(model):
        return get_acceptance()
    raise ModelError(
        f"the licence of {model.name} ({model.licence}) was not accepted",
        hint=f"read it at {model.source}; if you may use it, say --accept-licence",
    )


def _import_archive(registry: ModelRegistry, path: Path, accept: Accept) -> Iterator[Brought]:
    with zipfile.ZipFile(path) as archive:
        members = [
            item
            for item in archive.infolist()
            if item.filename.lower().endswith(_SUFFIX) and not item.is_dir()
        ]
        if not members:
            raise ModelError(f"no {_SUFFIX} file in {path}", hint="name a pack's .zip")
        for member in members:
            # Only the last part of its path is a name here, and only inside a folder of our own.
            name = Path(member.filename.replace("\\", "/")).name
            if member.file_size > _MAX_MEMBER:
                yield Brought(name, None, "left out: larger than any model", failed=True)
                continue
            with tempfile.TemporaryDirectory(prefix="livefuse-import-") as folder:
                file = Path(folder) / name
                try:
                    with archive.open(member) as source, file.open("wb") as target:
                        shutil.copyfileobj(source, target, _CHUNK)
                except (zipfile.BadZipFile, OSError, RuntimeError, EOFError) as error:
                    yield Brought(name, None, f"cannot be unpacked ({error})", failed=True)
                    continue
                yield _try_import(registry, file, name, accept, f"{path.resolve()}!{name}")


def _try_import(
    registry: ModelRegistry, path: Path, file: str, accept: Accept, origin: str = ""
) -> Brought:
    try:
        return import_file(registry, path, accept, file=file, origin=origin)
    except LivefuseError as error:
        return Brought(file, None, str(error), failed=True)


def _copy_file(source: Path, target: Path, digest: str) -> bool:
    """Copy atomically and check; return whether another file was there."""
    try:
        if target.exists() and source.samefile(target):
            return False
        was_there = target.exists() and compute_sha256(target) != digest
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with source.open("rb") as reader, os.fdopen(handle, "wb") as writer:
                written = _copy_and_hash(reader, writer)
            _check_copy(source, written, digest)
            Path(name).chmod(0o644)
            Path(name).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise ModelError(
            f"cannot copy {source} to {target} ({error.strerror or error})",
            hint="set models.folder to a folder of yours that holds manifest.toml",
        ) from None
    return was_there


def _check_copy(source: Path, written: str, digest: str) -> None:
    if written != digest:
        raise ModelError(
            f"{source} changed while it was copied: SHA-256 {written}, expected {digest}",
            hint="try again",
        )


def _copy_and_hash(reader: BinaryIO, writer: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := reader.read(_CHUNK):
        writer.write(chunk)
        digest.update(chunk)
    writer.flush()
    os.fsync(writer.fileno())
    return digest.hexdigest()


def _get_date() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
