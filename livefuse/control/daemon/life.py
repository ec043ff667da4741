"""The phases of a job's life, and which may follow which. Pure.

    draft -> submitted -> queued -> loading -> running <-> degraded -> stopping -> stopped | failed

A worker that dies takes its job back to loading; what has stopped or failed can be submitted or
started again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.errors import JobError

if TYPE_CHECKING:
    from livefuse.control.api.views import JobPhase

ACTIVE: Final[frozenset[JobPhase]] = frozenset(
    {"queued", "loading", "running", "degraded", "stopping"}
)
"""Somebody waits for it to run, it runs, or it is being closed."""

_BEGINS: Final[frozenset[JobPhase]] = frozenset({"submitted", "queued", "loading"})

_NEXT: Final[dict[JobPhase, frozenset[JobPhase]]] = {
    "draft": frozenset({"submitted"}),
    "submitted": _BEGINS,
    "queued": frozenset({"loading", "stopped", "failed"}),
    # From loading to loading: its worker died before it ran.
    "loading": frozenset(
        {"loading", "queued", "running", "degraded", "stopping", "stopped", "failed"}
    ),
    "running": frozenset({"degraded", "loading", "queued", "stopping", "stopped", "failed"}),
    "degraded": frozenset({"running", "loading", "queued", "stopping", "stopped", "failed"}),
    "stopping": frozenset({"stopped", "failed"}),
    "stopped": _BEGINS,
    "failed": _BEGINS,
}
_WHY: Final[dict[JobPhase, tuple[str, str]]] = {
    "draft": ("has nothing to do yet", "submit a spec"),
    "submitted": ("has not been started", "start it first"),
    "queued": ("waits for its turn", "stop it first"),
    "loading": ("is starting", "stop it first"),
    "running": ("is running", "stop it first"),
    "degraded": ("is running", "stop it first"),
    "stopping": ("is being stopped", "try again in a moment"),
    "stopped": ("has stopped", "start it again"),
    "failed": ("has failed", "start it again"),
}


def can_move(before: JobPhase, after: JobPhase) -> bool:
    """Say whether a job in phase `before` may come into phase `after`."""
    return after in _NEXT[before]


def check_move(job_id: str, before: JobPhase, after: JobPhase) -> None:
    """Refuse a change of phase that is none.

    Raises:
        JobError: it cannot be; the sentence says what the job does now.
    """
    if not can_move(before, after):
        what, hint = _WHY[before]
        raise JobError(f"the job {job_id} {what}", hint=hint)
