"""Commands about beautify: `looks list`, `looks show`, `looks parameters`."""

from __future__ import annotations

from cyclopts import App

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import say


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    looks = App(name="looks", help="Ready looks for the faces, and what they are made of.")
    looks.command(list_looks, name="list")
    looks.command(show_look, name="show")
    looks.command(list_parameters, name="parameters")
    app.command(looks)


def list_looks(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """List the looks: your own (beautify.looks) and those that come along."""
    from livefuse import looks  # noqa: PLC0415 - not for every command

    tree = load_config(config, tuple(settings or ()))
    for look in looks.list_looks(tree.beautify.looks):
        say(f"{look.name:<18} {look.text}  {look.chinese}".rstrip())


def show_look(name: str, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Print a look as it lies in its file: a start for one of your own."""
    from livefuse import looks  # noqa: PLC0415 - not for every command

    tree = load_config(config, tuple(settings or ()))
    say(looks.find_look(name, tree.beautify.looks).path.read_text("utf-8").rstrip())


def list_parameters() -> None:
    """List what beautify takes: name, range, what it does."""
    from livefuse.beauty import COLOURS, PARAMETERS  # noqa: PLC0415 - not for every command

    for name, row in PARAMETERS.items():
        reach = f"{row.low:g}..{row.high:g}"
        default = f" (default {row.default:g})" if row.default else ""
        say(f"{name:<14} {reach:<6} {row.kind:<7} {row.text}{default}  {row.chinese}")
    for name, colour in COLOURS.items():
        say(
            f"{name:<14} #rrggbb makeup  {colour.text} (default {colour.default})  {colour.chinese}"
        )
