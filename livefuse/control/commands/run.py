"""`livefuse run` and `livefuse demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from livefuse.config import Mode
from livefuse.control.failure import explain_unexpected
from livefuse.control.requests import RunRequest, Wish, create_request
from livefuse.errors import PublishConnectError

DEMO_SOURCE: Final = "demo:"
DEMO_TARGET: Final = Path("out/demo.mp4")

From = Annotated[
    str, Parameter(name="--from", metavar="URL", help="Where frames come from: a URL or a file.")
]
To = Annotated[
    list[str] | None,
    Parameter(
        name="--to",
        metavar="URL",
        negative=(),
        help="Where they go: a URL or a file; repeat it for more. env:NAME reads a URL from the "
        "environment.",
    ),
]
Operations = Annotated[
    str | None,
    Parameter(
        metavar="NAMES",
        help="What is done to faces, in order; none leaves them bare. Not said: detect,blur, or "
        "what --source-face and --look need.",
    ),
]
Face = Annotated[
    str,
    Parameter(
        name="--source-face",
        metavar="NAME",
        help="The face to show: avatar:NAME, or one that `livefuse faces list` shows.",
    ),
]
Look = Annotated[
    str, Parameter(metavar="NAME", help="How to beautify: `livefuse looks list` shows them.")
]
Params = Annotated[
    list[str] | None,
    Parameter(
        name="--param",
        metavar="NAME=VALUE",
        negative=(),
        help="One parameter of the token or of beautify; repeat it for more.",
    ),
]
ConfigFile = Annotated[
    Path | None, Parameter(name="--config", metavar="FILE", help="A TOML file of settings.")
]
Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        negative=(),
        help="One setting, section.key=value; repeat it for more.",
    ),
]
Seconds = Annotated[
    float | None, Parameter(name="--for", metavar="SECONDS", help="Stop after so many seconds.")
]
StatsFile = Annotated[
    Path | None, Parameter(metavar="FILE", help="Write the figures there at the end, as JSON.")
]
ModeOption = Annotated[
    Mode | None,
    Parameter(help="live drops late frames, every_frame drops none; auto looks at the URLs."),
]
Quiet = Annotated[bool, Parameter(negative=(), help="Say nothing but errors.")]


def add_commands(app: App) -> None:
    """Add `run` and `demo` to `app`."""
    app.command(run)
    app.command(demo)


def run(  # noqa: PLR0913 - one parameter per option of the command line
    *,
    source: From,
    to: To = None,
    operations: Operations = None,
    source_face: Face = "",
    look: Look = "",
    param: Params = None,
    config: ConfigFile = None,
    settings: Settings = None,
    for_s: Seconds = None,
    stats: StatsFile = None,
    mode: ModeOption = None,
    quiet: Quiet = False,
) -> None:
    """Take a stream, cover the faces in it, and send it on."""
    request = create_request(
        source,
        to or (),
        wish=Wish(operations, source_face, look, tuple(param or ())),
        config=config,
        settings=settings or (),
        mode=mode,
        for_s=for_s,
        stats=stats,
        quiet=quiet,
    )
    _run(request)


def demo(  # noqa: PLR0913 - one parameter per option of the command line
    *,
    source: From = DEMO_SOURCE,
    to: To = None,
    operations: Operations = None,
    source_face: Face = "",
    look: Look = "",
    param: Params = None,
    config: ConfigFile = None,
    settings: Settings = None,
    for_s: Seconds = None,
    stats: StatsFile = None,
    mode: ModeOption = None,
    quiet: Quiet = False,
) -> None:
    """Run on a source that comes along; writes out/demo.mp4 and says where to watch."""
    settings = list(settings or ())
    if to is None:
        settings.insert(0, "record.overwrite=true")
    if source == DEMO_SOURCE:
        mode = mode or "live"
    request = create_request(
        source,
        to or [str(DEMO_TARGET)],
        wish=Wish(operations, source_face, look, tuple(param or ())),
        config=config,
        settings=settings,
        mode=mode,
        for_s=for_s,
        stats=stats,
        quiet=quiet,
    )
    if to is None:
        _make_folder(DEMO_TARGET.parent)
    _run(request)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise PublishConnectError(
            f"cannot make the folder {folder} here ({error.strerror})",
            hint="go to a folder that you may write to, or say --to FILE",
        ) from None


def _run(request: RunRequest) -> None:
    with explain_unexpected(request.config.log.level, request.urls):
        from livefuse.control.session import run_request  # noqa: PLC0415 - loads the codecs

        run_request(request)
