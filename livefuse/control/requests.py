"""What the command line asks for, checked before anything starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.config import load_config
from livefuse.control.figures import check_writable
from livefuse.control.paths import check_distinct
from livefuse.errors import ConfigError, TokenError
from livefuse.token import check_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.config import Config, Mode

_FROM_ENVIRONMENT: Final = "env:"
NO_OPERATIONS: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One stream to run. `source` and `targets` may hold secrets."""

    source: str
    targets: tuple[str, ...]
    operations: tuple[str, ...]
    mode: Mode
    config: Config
    for_s: float | None = None
    stats: Path | None = None
    quiet: bool = False

    @property
    def urls(self) -> tuple[str, ...]:
        """Everything that may hold a secret."""
        return (self.source, *self.targets)


def create_request(  # noqa: PLR0913 - one parameter per option of the command line
    source: str,
    targets: Sequence[str],
    *,
    operations: str,
    config: Path | None,
    settings: Sequence[str],
    mode: Mode | None,
    for_s: float | None,
    stats: Path | None,
    quiet: bool,
) -> RunRequest:
    """Return the checked request.

    Raises:
        ConfigError: a key, a value, an option or the place for the figures cannot be used.
        TokenError: the operations are unknown or out of order.
    """
    tree = load_config(config, tuple(settings))
    if for_s is not None and not for_s > 0:  # nan is no length either
        raise ConfigError(f"--for {for_s:g} is no length of time", hint="write seconds above 0")
    if not targets and not tree.http.enabled:
        raise ConfigError("the stream goes nowhere", hint="add --to URL or set http.enabled=true")
    request = RunRequest(
        source=resolve_url(source),
        targets=tuple(map(resolve_url, targets)),
        operations=parse_operations(operations),
        mode=mode or tree.ring.mode,
        config=_hush(tree) if quiet else tree,
        for_s=for_s,
        stats=stats,
        quiet=quiet,
    )
    also_read = [path for path in (config, Path(tree.blur.picture)) if path and path.is_file()]
    check_distinct(request.source, request.targets, stats, also_read=also_read)
    if stats is not None:
        check_writable(stats)
    return request


def _hush(config: Config) -> Config:
    """Let logs tell only what is wrong; who asks for debug as well gets it."""
    if config.log.level != "info":
        return config
    log = msgspec.structs.replace(config.log, level="warning")
    return msgspec.structs.replace(config, log=log)


def resolve_url(text: str) -> str:
    """Return `text`, or for `env:NAME` what that environment variable holds.

    Raises:
        ConfigError: nothing is there.
    """
    url = text.strip()
    if url.startswith(_FROM_ENVIRONMENT):
        name = url.removeprefix(_FROM_ENVIRONMENT)
        url = os.environ.get(name, "").strip()
        if not url:
            raise ConfigError(
                f"the environment variable {name or '(no name)'} holds no URL",
                hint=f"write  export {name or 'NAME'}=rtmp://...  first",
            )
    if not url:
        raise ConfigError("an empty URL", hint="write one after --from and --to")
    return url


def parse_operations(text: str) -> tuple[str, ...]:
    """Return the operations of `detect,blur`; `none` stands alone for no operation.

    Raises:
        TokenError: none named, unknown or out of order.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise TokenError("--operations names none", hint="write none to leave faces bare")
    return () if names == [NO_OPERATIONS] else check_operations(names)
