"""What the daemon holds in memory of a job that it runs, and what beats say of it. On the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Literal, get_args

from livefuse.control.api.tracing import get_trace
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livefuse.control.api.caller import Caller
    from livefuse.control.api.views import JobPhase
    from livefuse.control.daemon.worker import WorkerHandle
    from livefuse.telemetry import Statistics
    from livefuse.workers.process import JobBeat

Asked = Literal["", "renew", "drain", "stop"]
"""What comes later here is more than what comes before."""

_ASKED: Final[tuple[Asked, ...]] = get_args(Asked)
_PHASES: Final[dict[str, JobPhase]] = {
    "": "degraded",
    "LOADING": "loading",
    "ONLINE": "running",
    "DEGRADED_INPUT": "degraded",
    "DEGRADED_INFERENCE": "degraded",
    "ERROR": "degraded",
}
_WELL_BEATS: Final = 2
_WINDOW_S: Final = 60.0


class Life:
    """One job. `worker` runs it now; `figures` are those of its end, until the record has them.

    `outputs` are its targets by the ids that its worker gave them. `generation` grows with each
    worker. Who changes what the job is to do holds `changing` from asking what it does now until
    that is kept.
    """

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.worker: WorkerHandle | None = None
        self.generation = 0
        self.figures: Statistics | None = None
        self.outputs: dict[str, str] = {}
        self.caller: Caller | None = None
        """Who started it; None: it goes on by itself."""
        self.note = ""
        """What is to be known while it runs: that it goes on in another file."""
        self.reason = ""
        """What its worker said last."""
        self.trace: Mapping[str, str] = {}
        """Of the request that asked last for its start or its end; empty: nobody's."""
        self.asked: Asked = ""
        self.changing = asyncio.Lock()
        self.news = asyncio.Event()
        self.has_worker = asyncio.Event()
        self.is_over = asyncio.Event()
        self.is_over.set()
        self.task: asyncio.Task[None] | None = None
        self._deaths: deque[float] = deque(maxlen=64)
        self._well_beats = 0

    def begin(self) -> None:
        """Start anew: nobody has asked for its end."""
        self.asked, self.reason, self.note, self.figures = "", "", "", None
        self.trace = get_trace()
        self.is_over.clear()
        self._deaths.clear()

    def take_worker(self, worker: WorkerHandle, outputs: dict[str, str]) -> None:
        """Run in `worker` from now on."""
        who = self.caller.name if self.caller is not None else ""
        facts = {"job": self.job_id, "worker": worker.number, "pid": worker.pid, "who": who}
        get_logger("jobs").info("job taken", **facts)
        self.worker = worker
        self.generation += 1
        self.outputs = outputs
        self.trace = {}
        self.has_worker.set()

    def leave_worker(self) -> None:
        """Run nowhere."""
        self.worker = None
        self.outputs = {}
        self.has_worker.clear()

    def ask(self, what: Asked) -> None:
        """Ask for its end; to be stopped is more than to be put aside, and that than to go on."""
        if _ASKED.index(what) > _ASKED.index(self.asked):
            self.asked, self.trace = what, get_trace()
        self.news.set()
        if self.worker is None and self.task is not None and what != "renew":
            self.task.cancel()  # whatever it waits for

    def take_renewal(self) -> bool:
        """Say whether it is to go on in another worker, and nothing more; that is done then."""
        if self.asked != "renew":
            return False
        self.asked, self.reason, self.caller = "", "", None
        return True

    def count_deaths(self, now_s: float) -> int:
        """Count the loss of a worker; return how many there were within a minute."""
        self._deaths.append(now_s)
        return sum(now_s - death_s < _WINDOW_S for death_s in self._deaths)

    def judge(self, beat: JobBeat, phase: JobPhase) -> JobPhase | None:
        """Return the phase that `beat` brings a job to that is in `phase`; None: no other.

        What comes and goes is one trouble, not many: it is well when it was for a second.
        """
        self.reason = beat.reason if beat.health else "it does not answer"
        now = _PHASES.get(beat.health)
        self._well_beats = self._well_beats + 1 if now == "running" else 0
        if now is None or now == phase or (phase == "loading" and not beat.health):
            return None
        is_early = phase == "degraded" and now == "running" and self._well_beats < _WELL_BEATS
        return None if is_early else now
