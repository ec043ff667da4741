"""What the command line asks for, checked before anything starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.clock import SystemClock
from livefuse.config import ModelsConfig, load_config
from livefuse.control.figures import check_writable
from livefuse.control.parameters import create_parameters
from livefuse.control.paths import check_distinct
from livefuse.errors import ConfigError, ConsentError, TokenError
from livefuse.token import GENERATING, check_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.config import Config, Mode
    from livefuse.token import Parameters

_FROM_ENVIRONMENT: Final = "env:"
NO_OPERATIONS: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One stream to run. `source` and `targets` may hold secrets."""

    source: str
    targets: tuple[str, ...]
    operations: tuple[str, ...]
    source_face: str
    parameters: Parameters
    mode: Mode
    config: Config
    for_s: float | None = None
    stats: Path | None = None
    quiet: bool = False

    @property
    def urls(self) -> tuple[str, ...]:
        """Everything that may hold a secret."""
        return (self.source, *self.targets)


class Wish(NamedTuple):
    """What is to be done to faces, as the command line says it; empty: not said."""

    operations: str | None = None
    source_face: str = ""
    look: str = ""
    parameters: tuple[str, ...] = ()


def create_request(  # noqa: PLR0913 - one parameter per option of the command line
    source: str,
    targets: Sequence[str],
    *,
    wish: Wish,
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
        TokenError: operations, parameters or the look are unknown or do not fit.
        ConsentError: the source face is not enrolled.
        RefusedError: the look names a public figure.
    """
    tree = load_config(config, tuple(settings))
    if wish.look:
        _check_look(wish.look, tree)
    parameters = create_parameters(wish.look, wish.parameters, tree.beautify)
    tree = apply_device_mode(tree, parameters.device_mode)
    if for_s is not None and not for_s > 0:  # nan is no length either
        raise ConfigError(f"--for {for_s:g} is no length of time", hint="write seconds above 0")
    if not targets and not tree.http.enabled:
        raise ConfigError("the stream goes nowhere", hint="add --to URL or set http.enabled=true")
    request = RunRequest(
        source=resolve_url(source),
        targets=tuple(map(resolve_url, targets)),
        operations=choose_operations(wish, parameters),
        source_face=resolve_face(wish.source_face, tree),
        parameters=parameters,
        mode=mode or tree.ring.mode,
        config=hush(tree) if quiet else tree,
        for_s=for_s,
        stats=stats,
        quiet=quiet,
    )
    also_read = [path for path in (config, Path(tree.blur.picture)) if path and path.is_file()]
    check_distinct(request.source, request.targets, stats, also_read=also_read)
    if stats is not None:
        check_writable(stats)
    return request


def hush(config: Config) -> Config:
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


def choose_operations(wish: Wish, parameters: Parameters) -> tuple[str, ...]:
    """Return what the wish says, or what its face and look need, or that faces are covered.

    Raises:
        TokenError: none named, unknown or out of order; a face or an amount that nothing uses.
    """
    if wish.operations is not None:
        names = parse_operations(wish.operations)
        _check_use(wish, parameters, names)
        return names
    swap = ("swap",) if wish.source_face else ()
    beautify = ("beautify",) if parameters.beautify else ()
    identify = ("identify",) if parameters.select == "reference" else ()
    blur = ("blur",) if parameters.blur_whom != "auto" or not (swap or beautify) else ()
    align = ("align",) if swap or beautify or identify else ()
    return check_operations(("detect", *align, *identify, *swap, *beautify, *blur))


def _check_use(wish: Wish, parameters: Parameters, names: tuple[str, ...]) -> None:
    """Refuse what would be without effect: whoever asks for a look and gets none is misled."""
    if wish.source_face and GENERATING.isdisjoint(names):
        raise TokenError(
            "--source-face is shown by swap or puppet, and neither is among the operations",
            hint="add swap after detect,align",
        )
    if parameters.beautify and "beautify" not in names:
        what = f"--look {wish.look}" if wish.look else next(iter(parameters.beautify))
        raise TokenError(
            f"{what} has no effect without beautify among the operations",
            hint="add beautify after detect,align",
        )


def apply_device_mode(config: Config, mode: str) -> Config:
    """Return `config` for a token's device_mode: a device by name, or lighter networks."""
    if mode == "light":
        align = msgspec.structs.replace(config.align, model="facemesh_468")
        detect = msgspec.structs.replace(config.detect, input_long_side=256, every_n=5)
        return msgspec.structs.replace(config, align=align, detect=detect)
    if mode == "auto":
        return config
    models = msgspec.convert(
        {**msgspec.to_builtins(config.models), "providers": mode}, ModelsConfig
    )
    return msgspec.structs.replace(config, models=models)


def _check_look(look: str, config: Config) -> None:
    """Refuse a look by the name of a public figure, and log that.

    Raises:
        RefusedError, AuditError, ConfigError: as `Refusals.check_text`.
    """
    from livefuse.safety.audit import open_audit  # noqa: PLC0415 - not for every run
    from livefuse.safety.refusals import Refusals  # noqa: PLC0415 - as above

    Refusals(config.refuse, open_audit(config, SystemClock())).check_text(look, "the look")


def resolve_face(name: str, config: Config) -> str:
    """Return the id of the face that the user calls `name`; empty stays empty.

    Raises:
        ConsentError: nobody of that name is enrolled; that is logged.
    """
    if not name:
        return ""
    from livefuse.safety.audit import open_audit  # noqa: PLC0415 - not for every run
    from livefuse.safety.faces import FaceStore  # noqa: PLC0415 - as above

    clock = SystemClock()
    try:
        return FaceStore(config.safety, clock).resolve(name)
    except ConsentError as error:
        facts = {"what": "source face", "reason": error.message}
        open_audit(config, clock).owe("job.refused", facts=facts)
        raise


def parse_operations(text: str) -> tuple[str, ...]:
    """Return the operations of `detect,blur`; `none` stands alone for no operation.

    Raises:
        TokenError: none named, unknown or out of order.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise TokenError("--operations names none", hint="write none to leave faces bare")
    return () if names == [NO_OPERATIONS] else check_operations(names)
