"""What becomes of the outputs while a job runs, told as it happens, and what it means at the end.

A remote server may come back and is dialled for ever. A file that could not be written stays
incomplete, so the run does not end as if all were well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livefuse.errors import PublishError
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    OutputFigures = dict[str, Any]


class OutputWatch:
    """Logs each loss of an output once, and its return. Used from the loop's thread."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._log = get_logger("publish")

    def note(self, outputs: Sequence[OutputFigures]) -> None:
        """Compare with what was told before of the output of each id.

        A connection that has just been made is none yet: a server may refuse it at once.
        """
        for index, output in enumerate(outputs):
            if _is_for_players(output):
                continue
            name, cause = str(output.get("id") or index), str(output["error"])
            if cause and cause != self._told.get(name):
                self._log.warning("output", url=output["url"], state=output["state"], cause=cause)
                self._told[name] = cause
            elif output["state"] == "live" and self._told.pop(name, ""):
                self._log.info("output", url=output["url"], state="live")


def is_all_lost(outputs: Sequence[OutputFigures]) -> bool:
    """Say whether every target was a file and none of them can be written any more."""
    targets = [output for output in outputs if not _is_for_players(output)]
    return bool(targets) and all(map(_is_lost_file, targets))


def explain_lost_files(outputs: Sequence[OutputFigures]) -> PublishError | None:
    """Return the failure of the files that could not be written, if any."""
    lost = [output for output in outputs if _is_lost_file(output)]
    if not lost:
        return None
    return PublishError(
        "; ".join(str(output["error"]) for output in lost),
        hint="make room or choose another place; what was written before can be played",
    )


def _is_for_players(output: OutputFigures) -> bool:
    """Say whether nobody asked for it: it is there for whoever comes."""
    return str(output["kind"]).startswith(("http", "webrtc"))


def _is_lost_file(output: OutputFigures) -> bool:
    return (output["kind"], output["state"]) == ("file", "refused")
