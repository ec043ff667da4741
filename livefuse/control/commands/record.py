"""`livefuse record`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import (  # noqa: TC001 - the command line is made of them
    ConfigFile,
    From,
    Quiet,
    Seconds,
    Settings,
)
from livefuse.control.failure import explain_unexpected
from livefuse.control.paths import check_distinct
from livefuse.control.requests import hush, resolve_url
from livefuse.errors import ConfigError
from livefuse.ingest import check_url, get_kind

if TYPE_CHECKING:
    from cyclopts import App

SUFFIX: Final = ".mkv"
_DRAWN: Final = frozenset({"demo", "test"})

File = Annotated[
    Path,
    Parameter(metavar="FILE", help="The file to write, FILE.mkv; FILE.mkv.jsonl goes with it."),
]


def add_commands(app: App) -> None:
    """Add `record` to `app`."""
    app.command(record)


def record(
    file: File,
    *,
    source: From,
    for_s: Seconds = None,
    config: ConfigFile = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Write down what comes in, packet by packet, to be replayed."""
    tree = load_config(config, tuple(settings or ()))
    tree = hush(tree) if quiet else tree
    url = resolve_url(source)
    check_record(url, file, for_s)
    with explain_unexpected(tree.log.level, (url,)):
        from livefuse.control.record_session import (  # noqa: PLC0415 - loads the codecs
            RecordRequest,
            run_recording,
        )

        run_recording(RecordRequest(url, file, tree, for_s, quiet=quiet))


def check_record(url: str, file: Path, for_s: float | None) -> None:
    """Check what can be known before anything is opened.

    Raises:
        ConfigError: the source draws its pictures here, the file is no .mkv or is the source, or
            the time is none.
    """
    check_url(url)
    if get_kind(url) in _DRAWN:
        raise ConfigError(
            f"{url} draws its pictures here: nothing comes in that could be recorded",
            hint=f"livefuse run --from {url} --operations none --to FILE.mkv writes what it shows",
        )
    if get_kind(url) == "whip":
        raise ConfigError(
            "whip: takes a browser's camera where a server runs, and record has none",
            hint="run that job with --set replay.keep_s=60, and send it SIGUSR1",
        )
    if file.suffix.lower() != SUFFIX:
        raise ConfigError(f"a recording is a {SUFFIX} file", hint=f"write {file.stem}{SUFFIX}")
    if for_s is not None and not for_s > 0:  # nan is no length either
        raise ConfigError(f"--for {for_s:g} is no length of time", hint="write seconds above 0")
    check_distinct(url, (str(file),), None, also_read=())
