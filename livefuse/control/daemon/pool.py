"""The daemon's workers: as many as its jobs need, and some that wait for the next job.

A worker serves until it ends or is left by its last job; then it waits for another one, where fewer
wait than there should. One that has not said anything for a while hangs, and is ended.
"""

from __future__ import annotations

import asyncio
import math
import os
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from livefuse.control.daemon.worker import WorkerHandle
from livefuse.errors import JobCapacityError
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.control.daemon.folder import DaemonFolder

Left = Literal["clean", "worn", "unknown"]
"""How a job leaves its worker."""

_LOOK_S: Final = 0.5
_LATE_S: Final = 1.0
_START_S: Final = 60.0
_WAIT_S: Final = 60.0
_RESTOCK_S: Final = 1.0  # the job that took the spare one comes first
_AT_ONCE: Final = max((os.cpu_count() or 1) // 2, 1) + 1
_BACKOFF_S: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)


class WorkerPool:
    """On the loop. `on_change`, to be set, is told of each beat of a worker, and of its end."""

    def __init__(
        self,
        config: Config,
        folder: DaemonFolder,
        epoch: int,
        group: asyncio.TaskGroup,
    ) -> None:
        self.on_change: Callable[[WorkerHandle], None] = lambda _: None
        self.config = config
        self.epoch = epoch
        self.workers: list[WorkerHandle] = []
        self.deaths = 0
        """Workers that were lost with jobs of theirs."""
        self._settings = config.daemon
        self._folder = folder
        self._group = group
        self._ready: set[WorkerHandle] = set()
        self._count = self._wanted = 0
        self._failures = 0
        """Workers that ended before they were ready, one after the other."""
        self._failed_s = self._taken_s = -math.inf
        self._is_closed = False
        self._news = asyncio.Event()
        self._log = get_logger("workers")

    async def run(self) -> None:
        """Keep workers in stock, and end those that hang, until cancelled."""
        loop = asyncio.get_running_loop()
        last_s = loop.time()
        while not self._is_closed:
            self._restock()
            self._end_retired()
            await asyncio.sleep(_LOOK_S)
            now_s = loop.time()
            # If we were held up ourselves, what they said meanwhile has yet to be read.
            if now_s - last_s < _LOOK_S + _LATE_S:
                self._end_silent(now_s)
            last_s = now_s

    async def acquire(self, job_id: str) -> WorkerHandle:
        """Return a worker that can be given the job; it counts as given.

        Raises:
            JobCapacityError: none could be started.
        """
        worker = await self._wait_for(self._find_free)
        worker.jobs.add(job_id)
        self._taken_s = asyncio.get_running_loop().time()
        return worker

    async def borrow(self) -> WorkerHandle:
        """Return any worker that answers, for a question; one without jobs if there is.

        Raises:
            JobCapacityError: there is none.
        """
        return await self._wait_for(self._find_idlest)

    async def prepare(self) -> None:
        """Wait until a worker is there that can be given a job.

        Raises:
            JobCapacityError: none could be started.
        """
        await self._wait_for(self._find_free)

    def set_config(self, config: Config, *, renews: bool) -> None:
        """Start workers with `config` from now on; with `renews` none of before takes a job more.

        Those that have not answered yet are not told what changes at once: they go, too.
        """
        self.config, self._settings = config, config.daemon
        idle = [one for one in self.workers if not one.jobs and one.is_alive]
        surplus = max(len(idle) - self._settings.spare_workers - self._wanted, 0)
        for worker in self.workers:
            if renews or not worker.is_ready.is_set() or worker in idle[:surplus]:
                worker.is_outdated = True
        self._tell_news()

    async def release(self, worker: WorkerHandle, job_id: str, state: Left = "clean") -> None:
        """Take the job from the worker, which is `worn` when it is not as it was before.

        With `unknown` nobody can say whether the job still runs there: the worker is ended, and its
        end is waited for, so that whoever goes on with the job does not publish beside it.
        """
        worker.jobs.discard(job_id)
        worker.is_worn = worker.is_worn or state == "worn"
        if state == "unknown":
            worker.end("what a job left in it is not known")
            await worker.has_ended.wait()
        elif not worker.jobs and (
            worker.is_worn
            or worker.is_outdated
            or self._count_idle() > self._settings.spare_workers
        ):
            worker.end("it is not needed")

    async def close(self) -> None:
        """End all workers and wait for that."""
        self._is_closed = True
        self._tell_news()
        await asyncio.gather(*(worker.close() for worker in list(self.workers)))

    async def _wait_for(self, find: Callable[[], WorkerHandle | None]) -> WorkerHandle:
        self._wanted += 1
        try:
            async with asyncio.timeout(_WAIT_S):
                while (worker := find()) is None:
                    if self._is_closed:
                        raise JobCapacityError("livefuse is ending", hint="start it again")
                    self._restock()
                    await self._news.wait()
                return worker
        except TimeoutError:
            raise JobCapacityError(
                "no worker can be started", hint="look at the log of livefuse serve"
            ) from None
        finally:
            self._wanted -= 1

    def _find_free(self) -> WorkerHandle | None:
        """Return the fullest worker that has room."""
        room = self._settings.jobs_per_worker
        free = [one for one in self.workers if one.is_alive and len(one.jobs) < room]
        return max(free, key=lambda one: len(one.jobs), default=None)

    def _find_idlest(self) -> WorkerHandle | None:
        alive = [one for one in self.workers if one.is_alive]
        return min(alive, key=lambda one: len(one.jobs), default=None)

    def _count_idle(self) -> int:
        return sum(
            not (one.jobs or one.ended_by or one.is_outdated or one.is_worn) for one in self.workers
        )

    def _restock(self) -> None:
        """Start a worker where one is missing; few at a time, each takes seconds of a processor."""
        missing = self._settings.spare_workers + self._wanted - self._count_idle()
        starting = sum(not one.is_ready.is_set() for one in self.workers)
        if self._is_closed or missing <= 0 or starting >= _AT_ONCE:
            return
        now_s = asyncio.get_running_loop().time()
        backoff_s = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        is_soon = not self._wanted and now_s < self._taken_s + _RESTOCK_S
        if not is_soon and now_s >= self._failed_s + backoff_s:
            self._start()

    def _start(self) -> None:
        self._count += 1
        # Its lines are read here, and told in the form that is wanted.
        log = msgspec.structs.replace(self.config.log, form="json")
        config = msgspec.structs.replace(self.config, log=log)
        folder = self._folder
        try:
            worker = WorkerHandle(
                self._count,
                self.epoch,
                config,
                folder.sockets,
                folder.workers_lock,
                self._note_change,
            )
        except OSError as error:
            self._note_failure(f"no process: {error.strerror}")
            return
        self.workers.append(worker)

    def _note_failure(self, cause: str) -> None:
        self._failures += 1
        self._failed_s = asyncio.get_running_loop().time()
        self._log.error("a worker did not start", cause=cause)

    def _note_change(self, worker: WorkerHandle) -> None:
        is_first = worker.is_ready.is_set() and worker not in self._ready
        if is_first:
            self._ready.add(worker)
            self._failures = 0
        if worker.has_ended.is_set():
            self._note_end(worker)
        if is_first or worker.has_ended.is_set():
            self._tell_news()
        self.on_change(worker)

    def _note_end(self, worker: WorkerHandle) -> None:
        self.workers.remove(worker)
        if worker not in self._ready and not (self._is_closed or worker.is_outdated):
            self._note_failure(worker.describe_end())
        self._ready.discard(worker)
        if worker.jobs:
            self.deaths += 1
            cause = worker.describe_end()
            jobs = ", ".join(sorted(worker.jobs))
            self._log.error("worker lost", worker=worker.number, job=jobs, cause=cause)
        self._group.create_task(worker.session.close())

    def _tell_news(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _end_retired(self) -> None:
        """End those that take no other job and have none."""
        for worker in self.workers:
            is_retired = worker.is_outdated or worker.is_worn
            if is_retired and not (worker.jobs or worker.questions or worker.ended_by):
                worker.end("it is not needed")

    def _end_silent(self, now_s: float) -> None:
        for worker in self.workers:
            silent_s = now_s - worker.last_beat_s
            limit_s = self._settings.silence_s if worker.is_ready.is_set() else _START_S
            if silent_s > limit_s and not worker.ended_by:
                worker.end(f"it said nothing for {silent_s:.1f} s")
