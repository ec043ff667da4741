"""How a failure ends: one line that says what to do, and an exit code."""

from __future__ import annotations

import contextlib
import sys
import traceback
from typing import TYPE_CHECKING

from livefuse.control.console import complain
from livefuse.errors import LivefuseError, get_exit_code
from livefuse.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterator


def report_failure(error: BaseException, urls: tuple[str, ...] = ()) -> int:
    """Say in one line what went wrong; return the exit code. `urls` hold secrets to hide."""
    complain(redact_text(str(error), urls))
    return get_exit_code(error)


@contextlib.contextmanager
def explain_unexpected(level: str, urls: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn an exception nobody foresaw into a line; the traceback is for `log.level = "debug"`.

    Raises:
        LivefuseError: instead of any other exception.
    """
    try:
        yield
    except LivefuseError as error:
        error.message = redact_text(error.message, urls)
        error.hint = redact_text(error.hint, urls)
        raise
    except Exception as error:  # noqa: BLE001 - the last net under everything
        hint = "the lines above say where; please report it"
        if level == "debug":
            sys.stderr.write(redact_text(traceback.format_exc(), urls))
        else:
            hint = "this is a fault in livefuse; add --set log.level=debug to see where"
        message = redact_text(f"unexpected {type(error).__name__} ({error})", urls)
        raise LivefuseError(message, hint=hint) from None
