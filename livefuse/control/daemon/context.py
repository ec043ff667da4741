"""What the daemon's handlers are given."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from aiohttp import web

from livefuse.control.daemon.life import ACTIVE
from livefuse.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from livefuse.config import Config
    from livefuse.control.daemon.answers import AnswerStore
    from livefuse.control.daemon.audit import DaemonAudit
    from livefuse.control.daemon.book import JobBook
    from livefuse.control.daemon.lives import Life
    from livefuse.control.daemon.pool import WorkerPool
    from livefuse.control.daemon.supervisor import Supervisor
    from livefuse.control.daemon.worker import WorkerHandle
    from livefuse.telemetry import Statistics

T = TypeVar("T")
_PATIENCE_S: Final = 5.0


@dataclass(slots=True)
class Daemon:
    """Used on the loop."""

    config: Config
    book: JobBook
    answers: AnswerStore
    pool: WorkerPool
    supervisor: Supervisor
    group: asyncio.TaskGroup
    audit: DaemonAudit
    under_way: set[tuple[str, str]] = field(default_factory=set)
    """Requests with an Idempotency-Key that are being done, by caller and key."""

    def find_owner(self, job_id: str) -> str | None:
        """Return the key that made the job, None when there is no such job."""
        record = self.book.find(job_id)
        return None if record is None else record.owner

    def find_last_figures(self, life: Life) -> Statistics | None:
        """Return the figures of the job's end, if it has come to one that left some."""
        record = self.book.find(life.job_id)
        return life.figures or (record.ending.figures if record is not None else None)

    async def find_worker(self, job_id: str) -> tuple[Life, WorkerHandle]:
        """Return the job and the worker that runs it, waiting a little for one that is to come.

        Raises:
            JobNotFoundError: there is no such job.
            JobError: it does not run.
        """
        life = self.supervisor.get_life(job_id)
        phase = self.book.get(job_id).phase
        if phase == "queued":
            raise JobError(f"the job {job_id} waits for its turn", hint="try again later")
        if phase not in ACTIVE:
            raise JobError(f"the job {job_id} is not running", hint="start it first")
        if life.worker is None:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await life.has_worker.wait()
            except TimeoutError:
                pass
        if life.worker is None:
            raise JobError(f"the job {job_id} is starting", hint="try again in a moment")
        return life, life.worker

    async def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` does; it goes on though whoever asked has hung up."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                result = await work
            except Exception as error:  # noqa: BLE001 - handed to the one who waits
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.group.create_task(run())
        return await done


DAEMON: Final[web.AppKey[Daemon]] = web.AppKey("daemon", Daemon)


def get_daemon(request: web.Request) -> Daemon:
    """Return the context of the application that `request` came to."""
    return request.app[DAEMON]
