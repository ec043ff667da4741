"""The command line. Parses, dispatches, and turns every failure into one line and an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from cyclopts import App, CycloptsError

from livefuse import __version__
from livefuse.control.commands import (
    audit,
    faces,
    keys,
    look,
    looks,
    mark,
    models,
    record,
    replay,
    run,
    serve,
    token,
    top,
)
from livefuse.control.console import complain
from livefuse.control.failure import explain_unexpected, report_failure
from livefuse.errors import LivefuseError
from livefuse.redact import redact_text
from livefuse.safety.actor import COMMAND_LINE, act_as

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERROR: Final = 2
INTERRUPTED: Final = 130


def create_app() -> App:
    """Return the parser with all commands."""
    app = App(
        name="livefuse",
        help="A live stream in, a filter on the faces in it, and on it goes, with its sound.",
        help_format="plaintext",  # Markdown would be read by a library that takes 0.1 s to load
        version=__version__,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    run.add_commands(app)
    serve.add_commands(app)
    replay.add_commands(app)
    record.add_commands(app)
    look.add_commands(app)
    looks.add_commands(app)
    models.add_commands(app)
    faces.add_commands(app)
    mark.add_commands(app)
    token.add_commands(app)
    top.add_commands(app)
    keys.add_commands(app)
    audit.add_commands(app)
    return app


def _explain_usage(text: str, tokens: Sequence[str]) -> str:
    if "--from" in text and "requires an argument" in text and "--from" not in tokens:
        return "say where frames come from: --from URL"
    if "requires an argument" in text:
        return f"{text.rstrip('.')}: write --option=VALUE for a value that begins with -"
    return f"{text.rstrip('.')}: see  livefuse --help"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name); return the exit code."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    try:
        with act_as(COMMAND_LINE), explain_unexpected("info", tuple(tokens)):
            try:
                result = create_app()(tokens, exit_on_error=False, print_error=False, verbose=False)
            except CycloptsError as error:
                complain(_explain_usage(redact_text(str(error), tuple(tokens)), tokens))
                return USAGE_ERROR
    except LivefuseError as error:
        return report_failure(error, tuple(tokens))
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0
