"""What workers log, told by the daemon with their number and, where it is clear, their job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.redact import redact_text
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Collection

_LEVELS: Final = frozenset({"debug", "info", "warning", "error"})
_OURS: Final = frozenset({"timestamp", "level", "event"})
_MAX_TEXT: Final = 2000


def log_line(line: str, worker: int, jobs: Collection[str]) -> None:
    """Log a line of a worker's standard error; from any thread.

    Our own lines are JSON; whatever else comes is a library's, or the last words of an interpreter.
    """
    fields = _read(line)
    only = next(iter(jobs), "") if len(jobs) == 1 else ""
    if fields is None:
        get_logger("worker").warning("said", worker=worker, job=only, text=_cut(line))
        return
    level = str(fields.get("level", "info"))
    own = {name: value for name, value in fields.items() if name not in _OURS}
    own.setdefault("job", only)
    log = getattr(get_logger("worker"), level if level in _LEVELS else "info")
    log(str(fields.get("event", "")), **{**own, "worker": worker})


def _read(line: str) -> dict[str, object] | None:
    if not line.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(line.encode("utf-8", "replace"))
    except msgspec.MsgspecError:
        return None
    return found if isinstance(found, dict) and "event" in found else None


def _cut(text: str) -> str:
    return redact_text(text)[:_MAX_TEXT]
