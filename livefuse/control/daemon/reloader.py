"""Applies a configuration that was changed while the daemon runs: what is concerned, nothing else.

The jobs that are concerned go on one after the other in new workers; each waits until its next
worker is there, so it is off the air for no longer than it takes to begin.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from livefuse.control.access import Access
from livefuse.control.background import call_in_thread
from livefuse.control.daemon.child_settings import SETTINGS_PATH
from livefuse.control.daemon.notify import notify
from livefuse.control.daemon.reload import compare, take_over
from livefuse.errors import JobCapacityError, LivefuseError
from livefuse.redact import redact_text
from livefuse.telemetry import get_logger, set_up_logging

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config, LimitsConfig
    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.reload import Changes
    from livefuse.control.daemon.worker import WorkerHandle

_NEXT_S: Final = 20.0
_LOOK_S: Final = 0.1
_TELL_S: Final = 3.0
_MORE_TIME: Final = "EXTEND_TIMEOUT_USEC=60000000"


class Reloader:
    """On the loop. `asked` is set by whoever wants the configuration read again.

    `read` returns it, from a thread; `limit` is given the section about callers.
    """

    def __init__(
        self,
        daemon: Daemon,
        read: Callable[[], Config],
        limit: Callable[[LimitsConfig], None],
        asked: asyncio.Event,
    ) -> None:
        self._daemon = daemon
        self._supervisor = daemon.supervisor
        self._read = read
        self._limit = limit
        self._asked = asked
        self._log = get_logger("daemon")

    async def run(self) -> None:
        """Reload whenever it is asked for, one after the other, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            if self._supervisor.is_draining:
                continue
            notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
            try:
                await self._reload()
            except LivefuseError as error:
                self._log.error("the configuration stays as it is", cause=redact_text(str(error)))
            except Exception as error:  # noqa: BLE001 - what runs is worth more than what was to come
                cause = redact_text(f"{type(error).__name__}: {error}")
                self._log.error("a reload failed", cause=cause)
            if not self._supervisor.is_draining:
                notify("READY=1")

    async def _reload(self) -> None:
        before, after = self._daemon.config, await call_in_thread("config", self._read_checked)
        changes = compare(before, after)
        if changes.daemon:
            keys = ", ".join(changes.daemon)
            self._log.warning("not applied before livefuse serve is started again", keys=keys)
        if changes.at_once or changes.jobs:
            await self._daemon.audit.note_reloaded(changes.applied_sections)
            await self._apply(take_over(before, after), changes)
        keys = ", ".join(changes.at_once + changes.jobs)
        self._log.info("configuration read again", keys=keys or "none changed")
        await self._renew_jobs()

    def _read_checked(self) -> Config:
        config = self._read()
        Access(config.access)
        return config

    async def _apply(self, config: Config, changes: Changes) -> None:
        daemon = self._daemon
        before, daemon.config = daemon.config, config
        if config.log != before.log:
            set_up_logging(config.log)
        if config.limits != before.limits:
            self._limit(config.limits)
        self._supervisor.config = config
        self._supervisor.doorkeeper.set_config(config.daemon)
        daemon.pool.set_config(config, renews=bool(changes.jobs))
        ready = [one for one in daemon.pool.workers if one.is_ready.is_set() and not one.ended_by]
        await asyncio.gather(*(self._tell(worker, config) for worker in ready))

    async def _tell(self, worker: WorkerHandle, config: Config) -> None:
        try:
            await worker.ask("PUT", SETTINGS_PATH, config, timeout_s=_TELL_S)
        except LivefuseError as error:
            cause = redact_text(str(error))
            self._log.warning("a worker was not told", worker=worker.number, cause=cause)

    # Jobs that are concerned.

    async def _renew_jobs(self) -> None:
        """Renew also what an earlier reload did not come to."""
        try:
            await self._renew_each()
        except JobCapacityError as error:
            cause = redact_text(str(error))
            self._log.error("jobs keep the configuration that they have", cause=cause)

    async def _renew_each(self) -> None:
        for worker, job_id in self._list_concerned():
            if self._supervisor.is_draining:
                return
            if (worker, job_id) in self._list_concerned():  # still
                notify(_MORE_TIME)
                await self._renew(worker, job_id)

    def _list_concerned(self) -> list[tuple[WorkerHandle, str]]:
        return [
            (worker, job_id)
            for worker in self._daemon.pool.workers
            for job_id in sorted(worker.jobs)
            if self._is_concerned(worker, job_id)
        ]

    def _is_concerned(self, worker: WorkerHandle, job_id: str) -> bool:
        record = self._daemon.book.find(job_id)
        if record is None or record.spec is None or worker.has_ended.is_set():
            return False
        return compare(worker.config, self._daemon.config).concern(record.spec)

    async def _renew(self, worker: WorkerHandle, job_id: str) -> None:
        """See a job leave its worker and run in another one; or fail, or end.

        Raises:
            JobCapacityError: there is no other one: the job stays where it is.
        """
        await self._daemon.pool.prepare()
        life = self._supervisor.peek(job_id)
        if not await self._wait(lambda: life.worker is worker or job_id not in worker.jobs):
            self._log.warning("the job keeps its configuration", job=job_id, cause="it is starting")
            return
        if life.worker is not worker or life.asked:
            return
        self._log.info("the job begins again", job=job_id, cause="its configuration changed")
        life.ask("renew")

        def is_there() -> bool:
            record = self._daemon.book.find(job_id)
            is_loading = record is not None and record.phase == "loading"
            return life.is_over.is_set() or (life.worker not in (None, worker) and not is_loading)

        await self._wait(is_there)

    async def _wait(self, is_done: Callable[[], bool]) -> bool:
        deadline_s = asyncio.get_running_loop().time() + _NEXT_S
        while not is_done():
            if asyncio.get_running_loop().time() > deadline_s or self._supervisor.is_draining:
                return False
            await asyncio.sleep(_LOOK_S)
        return True
