"""Commands that only look: `doctor`, `cameras`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say

if TYPE_CHECKING:
    from cyclopts import App


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    app.command(doctor)
    app.command(cameras)


def doctor(*, config: ConfigFile = None, settings: Settings = None, quick: bool = False) -> int:
    """Say what this machine has and lacks; the exit code is 1 when something must be mended.

    Each step is run 50 times and the slowest is named; --quick leaves that out.
    """
    tree = load_config(config, tuple(settings or ()))
    from livefuse.control.doctor.examine import examine, format_check  # noqa: PLC0415 - loads much

    checks = examine(tree, quick=quick)
    for check in checks:
        say(format_check(check))
    return int(any(check.level == "problem" for check in checks))


def cameras() -> None:
    """List the cameras by the name that camera:NAME takes, with their modes."""
    from livefuse.ingest.camera import list_cameras  # noqa: PLC0415 - loads FFmpeg

    found = list_cameras()
    for camera in found:
        say(f"camera:{camera.name}  {', '.join(camera.modes)}")
    if not found:
        complain("no camera found: plug one in, then run  livefuse cameras")
