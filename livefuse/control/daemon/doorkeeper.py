"""Measures what workers use, says whether there is room for one job more, and calls who waits.

A worker that holds more memory than it may is ended (memory_guard.py).

The rule is admission.py's; here is what it is told, and the queue: jobs in the phase `queued`, the
oldest first. None overtakes another.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from livefuse.control.background import call_in_thread
from livefuse.control.daemon.admission import (
    YOUNG_S,
    Demand,
    Kind,
    Room,
    Running,
    add_up,
    estimate_demand,
    find_free,
    find_shortage,
)
from livefuse.control.daemon.life import ACTIVE
from livefuse.control.daemon.memory_guard import MemoryGuard
from livefuse.errors import JobCapacityError, LivefuseError
from livefuse.machine.processes import count_cores, read_free_memory_bytes, read_spent
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from livefuse.config import DaemonConfig
    from livefuse.control.daemon.admission import Free
    from livefuse.control.daemon.book import JobBook
    from livefuse.control.daemon.pool import WorkerPool
    from livefuse.control.daemon.records import JobRecord
    from livefuse.machine.processes import Spent

_LOOK_S: Final = 2.0
_NEW_SHARE: Final = 0.3  # of a look, in the figure that is kept
_MAX_KINDS: Final = 256


class Doorkeeper:
    """On the loop. `admit`, to be set, starts a job that has waited."""

    def __init__(self, config: DaemonConfig, book: JobBook, pool: WorkerPool) -> None:
        self.admit: Callable[[str], Awaitable[None]] = _admit_nobody
        self._book = book
        self._pool = pool
        self.set_config(config)
        self._spent: dict[int, tuple[float, Spent]] = {}
        self._used: dict[int, Demand] = {}
        self._known: dict[Kind, Demand] = {}
        self._guard = MemoryGuard()
        self._log = get_logger("jobs")

    def set_config(self, config: DaemonConfig) -> None:
        """Judge by `config` from now on."""
        self._config = config
        self._cores = count_cores() * config.cores_share

    def check_room(self, record: JobRecord, *, may_wait: bool, is_operator: bool = False) -> str:
        """Return why the job has to wait; nothing when it need not. An operator has always a place.

        Raises:
            JobCapacityError: there is no room, and it may not wait or too many do already.
        """
        shortage = self._find_shortage(record) if self._config.admission else ""
        waiting = self._list_waiting()
        if not shortage and not waiting:
            return ""
        if not may_wait:
            raise JobCapacityError(
                f"this machine is full: {shortage or 'others wait already'}",
                hint="stop another job, or start it with ?queue=true",
            )
        if len(waiting) >= self._config.queue_places and not is_operator:
            raise JobCapacityError(
                f"this machine is full and {len(waiting)} jobs wait already", hint="try again later"
            )
        return shortage or "others wait before it"

    def count_waiting(self) -> int:
        """Return how many jobs wait for their turn."""
        return len(self._list_waiting())

    def measure_room(self) -> tuple[Demand, Free]:
        """Return what those that run use, and what is left, as the next job would be judged."""
        used = add_up(self._list_running(), self._known)
        return used, find_free(self._read_room(), used)

    async def run(self) -> None:
        """Measure and let in who waits, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            pids = [worker.pid for worker in self._pool.workers]
            spent = await call_in_thread("meter", lambda pids=pids: read_spent(pids))  # type: ignore[misc] # bound now, not when it runs
            now_s = asyncio.get_running_loop().time()
            self._note(now_s, spent)
            self._end_too_large(now_s, spent)
            await self._call_next()

    def _end_too_large(self, now_s: float, spent: dict[int, Spent]) -> None:
        self._guard.keep_only(spent)
        for worker in self._pool.workers:
            if worker.jobs and worker.pid in spent:
                held_bytes = spent[worker.pid].own_bytes
                limit_bytes = worker.config.pipeline.memory_limit_mb << 20
                why = self._guard.judge(worker.pid, held_bytes, limit_bytes, now_s)
                if why:
                    worker.end(why)

    async def _call_next(self) -> None:
        for record in self._list_waiting():
            shortage = self._find_shortage(record) if self._config.admission else ""
            if shortage:
                return
            try:
                await self.admit(record.job_id)
            except LivefuseError as error:
                self._log.warning("a job that waited", job=record.job_id, cause=str(error))
                return

    def _list_waiting(self) -> list[JobRecord]:
        waiting = [one for one in self._book.list_records() if one.phase == "queued"]
        return sorted(waiting, key=lambda one: one.since_epoch_s)

    def _find_shortage(self, record: JobRecord) -> str:
        kind, is_for_files = _sort(record)
        demand = estimate_demand(kind, self._known, is_for_files=is_for_files)
        return find_shortage(demand, self._read_room(), list(self._list_running()), self._known)

    def _read_room(self) -> Room:
        return Room(self._cores, read_free_memory_bytes(), self._config.max_encodes)

    def _list_running(self) -> Iterator[Running]:
        measured: dict[str, Demand] = {}
        for worker in self._pool.workers:
            if worker.jobs and worker.pid in self._used:
                cores, memory_bytes = self._used[worker.pid]
                share = Demand(cores / len(worker.jobs), memory_bytes // len(worker.jobs))
                measured |= dict.fromkeys(worker.jobs, share)
        for record in self._book.list_records():
            if record.phase in ACTIVE and record.phase != "queued":
                kind, is_for_files = _sort(record)
                used = measured.get(record.job_id)
                yield Running(kind, self._get_age_s(record), is_for_files, used)

    def _get_age_s(self, record: JobRecord) -> float:
        """Return for how long a job has been running well: before, it was loading."""
        return self._book.now_epoch_s() - record.since_epoch_s if record.phase == "running" else 0.0

    def _note(self, now_s: float, spent: dict[int, Spent]) -> None:
        for pid, new in spent.items():
            before_s, before = self._spent.get(pid, (now_s, new))
            if now_s > before_s:
                cores = max(new.cpu_s - before.cpu_s, 0.0) / (now_s - before_s)
                old = self._used.get(pid, Demand(cores, 0)).cores
                mixed = old + _NEW_SHARE * (cores - old)
                self._used[pid] = Demand(mixed, new.memory_bytes)
        self._spent = {pid: (now_s, new) for pid, new in spent.items()}
        self._used = {pid: used for pid, used in self._used.items() if pid in spent}
        self._learn()

    def _learn(self) -> None:
        """Keep what jobs of each kind use, once they have run well for a while."""
        for one in self._list_running():
            if one.measured is None or one.is_for_files or one.age_s < 2 * YOUNG_S:
                continue
            old = self._known.pop(one.kind, one.measured)
            cores = old.cores + _NEW_SHARE * (one.measured.cores - old.cores)
            self._known[one.kind] = Demand(cores, one.measured.memory_bytes)
            if len(self._known) > _MAX_KINDS:
                self._known.pop(next(iter(self._known)))


def _sort(record: JobRecord) -> tuple[Kind, bool]:
    """Return the job's operations, and whether it works on files."""
    spec = record.spec
    if spec is None:
        return (), False
    return tuple(spec.operations or ()), spec.mode == "every_frame"


async def _admit_nobody(_job_id: str) -> None:
    """Nobody has said how."""
