"""What happens to running jobs by itself, for the audit log; and the stop when that is full.

A job that goes on air, is degraded, ends: nobody asks for that, so a thread looks. It lives while
jobs do.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S
from livefuse.errors import AuditError
from livefuse.redact import redact_text
from livefuse.safety.actor import ITSELF
from livefuse.telemetry import get_logger
from livefuse.token import COVERING

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import AuditConfig
    from livefuse.job.health import Condition
    from livefuse.job.job import Job
    from livefuse.safety.audit import AuditLog
    from livefuse.safety.audit_records import Fact

_LOOK_S: Final = 0.25
_PROBE_NS: Final = 5 * NS_PER_S
_RETRY_NS: Final = NS_PER_S
GRACE_NS: Final = 5 * NS_PER_S
"""So long may the log be full before jobs are stopped; a log that is rotated away needs less."""

_MOST_CHANGES, _WITHIN_NS = 20, 60 * NS_PER_S
_STOP_S: Final = 8.0


@dataclass(slots=True)
class _Watched:
    """A job and what was logged of it last."""

    job: Job
    told: tuple[str, bool] = ("", False)
    changes_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_MOST_CHANGES))

    def may_tell(self, now_ns: int) -> bool:
        """Say whether a change is to be logged: an input that flickers fills no disc."""
        recent = self.changes_ns
        if len(recent) == _MOST_CHANGES and now_ns - recent[0] < _WITHIN_NS:
            return False
        recent.append(now_ns)
        return True


class JobWatch:
    """Safe from any thread."""

    def __init__(self, log: AuditLog, config: AuditConfig, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._watched: dict[str, _Watched] = {}
        self._room = RoomWatch(log, config, clock, self._list_running)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._told_fault = ""
        self._logger = get_logger("audit")

    def add(self, job: Job) -> None:
        """Look at `job` from now on."""
        with self._lock:
            self._watched[job.job_id] = _Watched(job)
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="livefuse-audit", daemon=True
                )
                self._thread.start()

    def look(self) -> None:
        """Log what has changed. Waits for the disc."""
        with self._lock:
            for job_id, watched in list(self._watched.items()):
                if watched.job.wait(0):
                    del self._watched[job_id]
                    self._tell_end(watched.job)
                elif (condition := watched.job.report.told) is not None:
                    self._tell_condition(watched, condition)

    def outlive(self, job: Job) -> None:
        """Wait for the end of `job`, and log it."""
        job.wait()
        self.look()

    def close(self) -> None:
        """Log what has ended, and look no more."""
        self._closing.set()
        self.look()

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_S):
            try:
                self.look()
                self._room.look()
            except Exception as error:  # noqa: BLE001 - what is to come has to be logged too
                self._tell_fault(redact_text(f"{type(error).__name__}: {error}"))
            with self._lock:
                if not self._watched:
                    self._thread = None
                    return

    def _tell_fault(self, text: str) -> None:
        """Log a fault of ours, once for as long as it is the same."""
        if text != self._told_fault:
            self._told_fault = text
            self._logger.error("a look at the jobs failed", cause=text)

    def _list_running(self) -> list[Job]:
        with self._lock:
            return [watched.job for watched in self._watched.values()]

    def _tell_condition(self, watched: _Watched, condition: Condition) -> None:
        if condition.health in ("LOADING", "STOPPED") or watched.job.error is not None:
            return  # it is not there yet, or ends: that is told in its own words
        event = "job.running" if condition.health == "ONLINE" else "job.degraded"
        # Of a job that is degraded already, too: a consent that ends is no matter of its input.
        told = (event, condition.is_withheld)
        if told == watched.told or not watched.may_tell(self._clock.now_ns()):
            return
        watched.told = told
        facts: dict[str, Fact] = {"health": condition.health}
        if condition.reason:
            facts["reason"] = redact_text(condition.reason)
        self._log.owe(event, who=ITSELF, job=watched.job.job_id, facts=facts)

    def _tell_end(self, job: Job) -> None:
        error = job.error
        facts: dict[str, Fact] = {"frames_out": job.telemetry.latency.count}
        if error is not None:
            facts |= {"error": type(error).__name__, "reason": redact_text(error.message)}
        event = "job.stopped" if error is None else "job.failed"
        self._log.owe(event, who=ITSELF, job=job.job_id, facts=facts)


class RoomWatch:
    """Stops jobs that hide or replace faces once the log has been full for a while.

    For one thread.
    """

    def __init__(
        self, log: AuditLog, config: AuditConfig, clock: Clock, list_jobs: Callable[[], list[Job]]
    ) -> None:
        self._log = log
        self._stops = config.when_full == "stop"
        self._clock = clock
        self._list_jobs = list_jobs
        self._next_ns = 0
        self._full_ns: int | None = None
        self._logger = get_logger("audit")

    def look(self) -> None:
        """Try whether there is room, every 5 s, or every second while there is none."""
        now_ns = self._clock.now_ns()
        if now_ns < self._next_ns and not (self._log.is_full and self._full_ns is None):
            return
        if self._log.probe():
            self._next_ns = now_ns + _PROBE_NS
            if self._full_ns is not None:
                self._logger.info("the audit log can be written again")
            self._full_ns = None
            return
        self._next_ns = now_ns + _RETRY_NS
        if self._full_ns is None:
            self._full_ns = now_ns
            self._logger.error("the audit log cannot be written", folder=str(self._log.folder))
        elif self._stops and now_ns - self._full_ns >= GRACE_NS:
            self._stop()

    def _stop(self) -> None:
        for job in self._list_jobs():
            if COVERING.isdisjoint(job.token.get().operations) or job.error is not None:
                continue
            job.error = AuditError(
                "stopped, because the audit log cannot be written",
                hint="make room on the disc; audit.when_full = go_on lets jobs run unlogged",
            )
            threading.Thread(target=job.stop, args=(_STOP_S,), daemon=True).start()
