"""`livefuse mark`: read the marks of generated pictures; `mark key` is in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands.mark_key import key, parse_public_key
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import say
from livefuse.control.failure import explain_unexpected
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.control.mark_report import MarkReport

NOTHING_FOUND: Final = 1
_MAX_SECONDS: Final = 3600.0

Source = Annotated[str, Parameter(metavar="FILE|URL", help="A file, or a stream to be dialled.")]
Seconds = Annotated[
    float, Parameter(metavar="SECONDS", help="How much of it is looked at; two are enough for one.")
]
Jobs = Annotated[
    list[str] | None,
    Parameter(
        name="--job",
        metavar="NAME",
        negative=(),
        help="A job's name, told instead of its number in marks; repeat it for more.",
    ),
]
Keys = Annotated[
    list[str] | None,
    Parameter(
        name="--key",
        metavar="HEX",
        negative=(),
        help="Another install's public key, as its `livefuse mark key` prints it; repeat for more.",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative=(), help="Write it as JSON.")]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    mark = App(name="mark", help="The marks of generated pictures.")
    mark.command(read)
    mark.command(key)
    app.command(mark)


def read(  # noqa: PLR0913 - one parameter per option of the command line
    source: Source,
    /,
    *,
    seconds: Seconds = 10.0,
    job: Jobs = None,
    keys: Keys = None,
    json: Json = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> int:
    """Say which marks a file or a stream carries; the exit code is 1 when there is none.

    All of them are looked for: the invisible mark, the record on keyframes, the visible label and
    what the container and a recording's signature say. The invisible mark is found only with the
    keys of the install that made it: another's folder is named with --set safety.folder=FOLDER. For
    its records the public key is enough.
    """
    if not 0 < seconds <= _MAX_SECONDS:
        raise ConfigError(
            f"cannot look at {seconds:g} seconds",
            hint=f"choose more than 0, up to {_MAX_SECONDS:g}",
        )
    tree = load_config(config, tuple(settings or ()))
    public_keys = [parse_public_key(text) for text in keys or ()]
    with explain_unexpected(tree.log.level, (source,)):
        from livefuse.control.mark_reader import MarkReader  # noqa: PLC0415 - loads the codecs

        report = MarkReader(tree, tuple(job or ()), public_keys).read(source, seconds)
    _show(report, as_json=json)
    return 0 if report.survived else NOTHING_FOUND


def _show(report: MarkReport, *, as_json: bool) -> None:
    if as_json:
        told = msgspec.to_builtins(report) | {"survived": report.survived}
        say(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
        return
    from livefuse.control.mark_report import tell  # noqa: PLC0415 - as above

    for sentence in tell(report):
        say(sentence)
