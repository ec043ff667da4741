"""Runs the jobs that are wanted, each in a worker, and brings them back when theirs is lost.

What is wanted is in the store before a worker is told, and what was lost begins again from there.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Final

from livefuse.control.api.caller import is_large_enough
from livefuse.control.api.views import NewJob
from livefuse.control.daemon.doorkeeper import Doorkeeper
from livefuse.control.daemon.life import ACTIVE, check_move
from livefuse.control.daemon.lives import Life
from livefuse.control.daemon.records import Ending
from livefuse.control.daemon.resume import place
from livefuse.control.daemon.stint import Stint, name_owner, name_targets
from livefuse.errors import DaemonError, JobCapacityError, JobError, LivefuseError
from livefuse.redact import redact_text
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.control.api.caller import Caller
    from livefuse.control.api.views import JobPhase
    from livefuse.control.daemon.audit import DaemonAudit
    from livefuse.control.daemon.book import JobBook
    from livefuse.control.daemon.lives import Asked
    from livefuse.control.daemon.pool import WorkerPool
    from livefuse.control.daemon.records import JobRecord
    from livefuse.control.daemon.worker import WorkerHandle

_ENDING: Final = "livefuse is ending"
_BACKOFF_S: Final = (0.0, 0.5, 1.0, 2.0, 4.0)
_PASSING: Final = (JobCapacityError, DaemonError)
"""No worker, or none that answers: that may be better soon."""


class Supervisor:
    """On the loop. Its jobs run in `group`, whose end they may see."""

    def __init__(
        self,
        config: Config,
        book: JobBook,
        pool: WorkerPool,
        group: asyncio.TaskGroup,
        audit: DaemonAudit,
    ) -> None:
        self.book = book
        self.pool = pool
        self.doorkeeper = Doorkeeper(config.daemon, book, pool)
        self.doorkeeper.admit = self.admit
        self.is_draining = False
        self.config = config
        self._group = group
        self._audit = audit
        self._lives: dict[str, Life] = {}
        self._log = get_logger("jobs")

    def get_life(self, job_id: str) -> Life:
        """Return what is held of a job that is there.

        Raises:
            JobNotFoundError: there is none.
        """
        self.book.get(job_id)
        return self._lives.setdefault(job_id, Life(job_id))

    def peek(self, job_id: str) -> Life:
        """Return what is held of a job, for a look at it; it may be gone."""
        return self._lives.get(job_id) or Life(job_id)

    def note_worker(self, worker: WorkerHandle) -> None:
        """Take note that a worker has said something, or has ended."""
        for job_id in worker.jobs:
            if job_id in self._lives:
                self._lives[job_id].news.set()

    # What people ask for.

    async def start(
        self, job_id: str, caller: Caller | None = None, *, may_wait: bool = False
    ) -> JobRecord:
        """Want a job to run, and see a worker take it, as `caller` (by default its owner) wants.

        With `may_wait` it waits for its turn where there is no room now.

        Raises:
            JobNotFoundError, JobError: there is none, it has nothing to do, or it runs.
            JobCapacityError: livefuse is ending, there is no room, or no worker can be started.
            LivefuseError: it cannot be done, as its worker says.
        """
        life = self.get_life(job_id)
        async with life.changing:
            if self.is_draining:
                raise JobCapacityError(_ENDING, hint="start it again")
            phase = self.book.get(job_id).phase
            if phase in ACTIVE:  # from loading to loading is for workers alone
                check_move(job_id, phase, "submitted")
            await life.is_over.wait()  # the last of its former life may be on its way
            before = self.book.get(job_id)
            check_move(job_id, before.phase, "loading")
            is_operator = caller is not None and is_large_enough(caller, "operator")
            shortage = self.doorkeeper.check_room(
                before, may_wait=may_wait, is_operator=is_operator
            )
            if shortage:
                return await self.book.move(job_id, "queued", shortage, is_wanted=True)
            record = await self.book.move(job_id, "loading", is_wanted=True)
            taken = self._begin(life, resumes=False, caller=caller)
        await taken
        return self.book.find(job_id) or record

    async def admit(self, job_id: str) -> None:
        """Start a job that has waited for its turn, if it still does.

        Raises:
            LivefuseError: it cannot be done, as its worker says.
        """
        life = self.get_life(job_id)
        async with life.changing:
            if self.is_draining or self.book.get(job_id).phase != "queued":
                return
            await self.book.move(job_id, "loading")
            taken = self._begin(life, resumes=False)
        await taken

    async def stop(self, job_id: str) -> JobRecord:
        """Want a job to run no more, and see it closed; one that does not run is as it is.

        Raises:
            JobNotFoundError: there is none.
            StorageError: that it is not wanted cannot be kept.
        """
        life = self.get_life(job_id)
        async with life.changing:
            record = self.book.get(job_id)
            if record.phase in ACTIVE and record.phase != "stopping":
                phase: JobPhase = "stopped" if record.phase == "queued" else "stopping"
                await self.book.move(job_id, phase, is_wanted=False)
                self._log.info("job stops", job=job_id)
                life.ask("stop")
        await life.is_over.wait()
        return self.book.get(job_id)

    async def delete(self, job_id: str) -> None:
        """Stop a job and forget it.

        Raises:
            JobNotFoundError: there is none.
        """
        await self.stop(job_id)
        life = self.get_life(job_id)
        async with life.changing:
            await self.book.delete(job_id)
            self._lives.pop(job_id, None)
        await self._audit.note_deleted(job_id)

    # The daemon's own life.

    async def resume(self) -> None:
        """Start what is wanted, and close the books on what an earlier daemon did not finish."""
        for record in self.book.list_records():
            if record.is_wanted and record.phase == "queued":
                continue  # its turn has not come
            if record.is_wanted:
                if record.phase == "stopping":
                    await self.book.follow(record.job_id, "stopped")
                await self.book.follow(record.job_id, "loading", "livefuse was started again")
                self._begin(self.get_life(record.job_id), resumes=True)
            elif record.phase in ACTIVE:
                await self._settle(record.job_id)

    async def drain(self) -> None:
        """Close every job in order; those that are wanted stay so, and run with the next daemon."""
        self.is_draining = True
        lives = [life for life in self._lives.values() if not life.is_over.is_set()]
        for life in lives:
            life.ask("drain")
        await asyncio.gather(*(life.is_over.wait() for life in lives))

    def cancel(self) -> None:
        """Let go of all jobs at once: their workers are ended by whoever ends."""
        self.is_draining = True
        for life in self._lives.values():
            if life.task is not None:
                life.task.cancel()

    # A job's supervision.

    def _begin(
        self, life: Life, *, resumes: bool, caller: Caller | None = None
    ) -> asyncio.Future[None]:
        """Supervise a job from now on; the future is done when a worker took it, or said no."""
        life.begin()
        life.caller = caller
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        taken.add_done_callback(lambda done: done.cancelled() or done.exception())
        work = self._supervise(life, taken, resumes=resumes)
        life.task = self._group.create_task(work, context=contextvars.Context())  # nobody's acts
        return taken

    async def _supervise(self, life: Life, taken: asyncio.Future[None], *, resumes: bool) -> None:
        try:
            await self._run(life, taken, resumes=resumes)
        except asyncio.CancelledError:
            if not life.asked:
                raise
            await self._settle(life.job_id, life.asked)
        except LivefuseError as error:
            await self._fail(life, taken, error)
        except Exception as error:  # noqa: BLE001 - told before the end is: else it looks like success
            text = redact_text(f"{type(error).__name__}: {error}")
            self._log.error("a job's supervision failed", job=life.job_id, cause=text)
            await self._fail(life, taken, JobError("a fault in livefuse", hint="please report it"))
        finally:
            if (worker := life.worker) is not None:  # it was not left in order
                life.leave_worker()
                await self.pool.release(worker, life.job_id, "unknown")
            life.is_over.set()
            if not taken.done():
                taken.set_result(None)

    async def _run(self, life: Life, taken: asyncio.Future[None], *, resumes: bool) -> None:
        while True:
            try:
                stint = await self._give(life, resumes=resumes)
            except _PASSING as error:
                if not resumes and type(error) is JobCapacityError:
                    raise
                cause = error.message
            else:
                if not taken.done():
                    taken.set_result(None)
                resumes, end = True, await stint.watch()
                if end != "lost":
                    if await stint.finish(end):
                        return
                    continue
                cause = stint.worker.describe_end()
                life.leave_worker()
            await self._come_back(life, cause)
            resumes = True

    async def _give(self, life: Life, *, resumes: bool) -> Stint:
        """Have a worker run the job."""
        job_id = life.job_id
        worker = await self.pool.acquire(job_id)
        try:
            # What is patched until now is in what it is given, what comes later finds it running.
            async with life.changing:
                record = self.book.get(job_id)
                spec, life.note = await place(record, self.config.record, resumes=resumes)
                wish = NewJob(id=job_id, spec=spec, start=True)
                owner = name_owner(record, life.caller)
                await worker.ask("POST", "/v1/jobs", wish, caller=owner, trace=life.trace)
                life.take_worker(worker, await name_targets(worker, record))
        except BaseException as error:
            # What a worker refuses leaves nothing in it; else nobody knows how far it came.
            is_refused = isinstance(error, LivefuseError) and not isinstance(error, _PASSING)
            await self.pool.release(worker, job_id, "clean" if is_refused else "unknown")
            raise
        return Stint(life, worker, self.book, self.pool)

    async def _come_back(self, life: Life, cause: str) -> None:
        """See a job through the loss of its worker.

        Raises:
            JobError: it was one too many.
        """
        deaths = life.count_deaths(asyncio.get_running_loop().time())
        self._log.warning("the job comes back", job=life.job_id, cause=cause, times=deaths)
        if deaths >= self.config.daemon.max_deaths_per_min:
            raise JobError(
                f"it lost {deaths} workers within a minute, the last one so: {cause}",
                hint="look at the log, then start it again",
            )
        await self._audit.note_lost(life.job_id, cause)
        await self.book.follow(life.job_id, "loading", f"its worker was lost: {cause}")
        await self.book.count_restart(life.job_id)
        life.caller = None
        await asyncio.sleep(_BACKOFF_S[min(deaths, len(_BACKOFF_S)) - 1])

    async def _fail(self, life: Life, taken: asyncio.Future[None], error: LivefuseError) -> None:
        await self._audit.note_failed(life.job_id, str(error))
        how, ending = redact_text(str(error)), Ending(error_type=type(error).__name__)
        await self.book.follow(life.job_id, "failed", how, is_wanted=False, ending=ending)
        if not taken.done():
            taken.set_exception(error)

    async def _settle(self, job_id: str, asked: Asked = "stop") -> None:
        """Say that a job runs no more."""
        reason = _ENDING if asked == "drain" else ""
        await self.book.follow(
            job_id, "stopped", reason, is_wanted=None if asked == "drain" else False
        )
