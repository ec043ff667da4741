"""A job in one worker: watched until it ends, is to end, or loses the worker; left in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from livefuse.control.api.caller import LOCAL, Caller
from livefuse.control.api.views import JobPhase, JobView, OutputList
from livefuse.control.daemon.records import Ending
from livefuse.errors import JobError, JobMemoryError, LivefuseError
from livefuse.safety.actor import ITSELF
from livefuse.workers.process import JobBeat

if TYPE_CHECKING:
    from livefuse.control.daemon.book import JobBook
    from livefuse.control.daemon.lives import Life
    from livefuse.control.daemon.pool import Left, WorkerPool
    from livefuse.control.daemon.records import JobRecord
    from livefuse.control.daemon.worker import WorkerHandle
    from livefuse.telemetry import Statistics

End = Literal["asked", "stopped", "failed", "lost"]
_ENDS: Final[dict[str, End]] = {"stopped": "stopped", "failed": "failed"}
_OURSELVES: Final = Caller(LOCAL.key_id, LOCAL.role, ITSELF)
_STOP_S: Final = 12.0
_RENEWED: Final = "its configuration changed"
_ENDED: Final = "its source has ended"
_ENDING: Final = "livefuse is ending"


class Stint:
    """On the loop."""

    def __init__(self, life: Life, worker: WorkerHandle, book: JobBook, pool: WorkerPool) -> None:
        self.worker = worker
        self._life = life
        self._book = book
        self._pool = pool
        self._path = f"/v1/jobs/{life.job_id}"
        self._last: JobBeat | None = None

    async def watch(self) -> End:
        """Keep book of the job's health until it ends; return how."""
        life = self._life
        while True:
            await life.news.wait()
            life.news.clear()
            if self.worker.has_ended.is_set():
                life.take_renewal()  # it has another one now anyway
                return "lost"
            if life.asked:
                return await self._look_again() if life.asked == "renew" else "asked"
            beat = self.worker.beats.get(life.job_id)
            if beat is None:
                continue
            end = _ENDS.get(beat.phase)
            if end is not None and beat.error_type == JobMemoryError.__name__:
                # The process is too large, whatever has made it so: in another one it may go on.
                self.worker.end(beat.error)
                await self.worker.has_ended.wait()
                return "lost"
            if end is not None:
                self._last = beat
                return end
            await self._note(beat)

    async def _look_again(self) -> End:
        """Return how a job that is to go on elsewhere has ended meanwhile; `asked`: it has not."""
        try:
            reply = await self.worker.ask("GET", self._path)
        except LivefuseError:
            return "asked"
        view = msgspec.json.decode(reply.data, type=JobView)
        end = _ENDS.get(view.state, "asked")
        if end != "asked":
            self._last = JobBeat(
                id=view.id, phase=view.state, error=view.error, error_type=view.error_type
            )
        return end

    async def finish(self, end: End) -> bool:
        """Leave the worker, having stopped the job if that was asked for, and keep how it was.

        False when that is not its end: it goes on in another worker.
        """
        life = self._life
        figures = await self._stop() if end == "asked" else await self._read_figures()
        is_worn = figures is None or figures.counts.get("abandoned_threads", 0)
        state: Left = "worn" if is_worn else "clean"
        try:
            await self.worker.ask("DELETE", self._path)
        except LivefuseError:
            state = "unknown"
        life.figures = figures
        life.leave_worker()
        await self._pool.release(self.worker, life.job_id, state)
        if end == "asked" and life.take_renewal():
            await self._book.follow(life.job_id, "loading", _RENEWED)
            return False
        await self._settle(end)
        return True

    async def _settle(self, end: End) -> None:
        life = self._life
        is_kept = life.asked == "drain" and end == "asked"
        phase: JobPhase = "failed" if end == "failed" else "stopped"
        error = self._last.error if self._last is not None else ""
        error_type = self._last.error_type if self._last is not None else ""
        reason = error if end == "failed" else _ENDED if end == "stopped" else ""
        await self._book.follow(
            life.job_id,
            phase,
            _ENDING if is_kept else reason,
            is_wanted=None if is_kept else False,
            ending=Ending(error_type=error_type, figures=life.figures),
        )

    async def _note(self, beat: JobBeat) -> None:
        life = self._life
        record = self._book.find(life.job_id)
        if record is None:
            return
        phase = life.judge(beat, record.phase)
        if phase is not None:
            reason = life.note if phase == "running" else life.reason
            await self._book.follow(life.job_id, phase, reason)

    async def _stop(self) -> Statistics | None:
        try:
            # Who has stopped it is known above; else it was ourselves.
            caller = LOCAL if self._life.asked == "stop" else _OURSELVES
            path = f"{self._path}/stop"
            reply = await self.worker.ask(
                "POST", path, caller=caller, timeout_s=_STOP_S, trace=self._life.trace
            )
        except LivefuseError:
            self.worker.end("it did not stop a job")
            return None
        view = msgspec.json.decode(reply.data, type=JobView)
        if view.state == "running":
            self.worker.end("a job did not stop")
        return view.statistics

    async def _read_figures(self) -> Statistics | None:
        try:
            reply = await self.worker.ask("GET", self._path)
        except LivefuseError:
            return None
        return msgspec.json.decode(reply.data, type=JobView).statistics


def name_owner(record: JobRecord, caller: Caller | None) -> Caller:
    """Return for whom a worker runs a job: as whose, with no bounds; and by whom it was started."""
    return Caller(record.owner, "operator", caller.name if caller else ITSELF)


async def name_targets(worker: WorkerHandle, record: JobRecord) -> dict[str, str]:
    """Return the targets of a job by the ids that its worker has given them, in their order."""
    try:
        reply = await worker.ask("GET", f"/v1/jobs/{record.job_id}/outputs")
    except JobError:
        return {}  # it is over already
    outputs = msgspec.json.decode(reply.data, type=OutputList).outputs
    targets = record.spec.targets if record.spec is not None else ()
    return dict(zip((output.id for output in outputs), targets, strict=False))
