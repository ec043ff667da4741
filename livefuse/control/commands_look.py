"""Commands that only look: `doctor`, `cameras`, `models list`, `models verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from livefuse.config import load_config
from livefuse.control.commands_run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say

if TYPE_CHECKING:
    from livefuse.runtime.registry import ModelRegistry


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    app.command(doctor)
    app.command(cameras)
    models = App(name="models", help="The networks that find faces.")
    models.command(list_models, name="list")
    models.command(verify_models, name="verify")
    app.command(models)


def doctor(*, config: ConfigFile = None, settings: Settings = None, quick: bool = False) -> int:
    """Say what this machine has and lacks; the exit code is 1 when something must be mended.

    Each step is run 50 times and the slowest is named; --quick leaves that out.
    """
    tree = load_config(config, tuple(settings or ()))
    from livefuse.control.doctor import examine, format_check  # noqa: PLC0415 - loads much

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


def list_models(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """List the models: name, licence, family, file."""
    registry = _load_registry(config, settings)
    for model in registry.list_models():
        say(f"{model.name:<22} {model.licence:<12} {model.family:<12} {model.file}")


def verify_models(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """Check each model file against its SHA-256; a bad one is an error."""
    registry = _load_registry(config, settings)
    for model in registry.list_models():
        if not (model.embedded or registry.is_present(model.name)):
            continue
        say(f"ok  {registry.verify_model(model.name)}")


def _load_registry(config: ConfigFile, settings: Settings) -> ModelRegistry:
    tree = load_config(config, tuple(settings or ()))
    from livefuse.runtime.registry import load_registry  # noqa: PLC0415 - not for every command

    return load_registry(tree.models)
