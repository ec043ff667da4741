"""`livefuse serve`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.failure import explain_unexpected

if TYPE_CHECKING:
    from cyclopts import App


def add_commands(app: App) -> None:
    """Add `serve` to `app`."""
    app.command(serve)


def serve(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """Keep jobs and run them, asked over HTTP; they outlive this process and its workers.

    SIGHUP has it read its configuration again: jobs that a change concerns begin again.
    """
    read = partial(load_config, config, tuple(settings or ()))
    tree = read()
    with explain_unexpected(tree.log.level):
        from livefuse.control.daemon.serve import run_daemon  # noqa: PLC0415 - slow to load

        run_daemon(tree, read)
