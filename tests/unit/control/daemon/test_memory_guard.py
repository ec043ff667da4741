"""Workers that are too large are ended, and their live jobs go on in others (C30)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from livefuse.config import Config, DaemonConfig, PipelineConfig
from livefuse.control.daemon.doorkeeper import Doorkeeper
from livefuse.control.daemon.memory_guard import MemoryGuard
from livefuse.machine.processes import Spent

if TYPE_CHECKING:
    from livefuse.control.daemon.book import JobBook
    from livefuse.control.daemon.pool import WorkerPool

MB = 1 << 20


def test_a_worker_has_the_time_that_its_job_needs_to_see_to_it():
    guard = MemoryGuard()
    assert [guard.judge(7, held * MB, 100 * MB, at) for at, held in
            ((0, 100), (2, 150), (10, 120), (16, 199))] == [""] * 4  # fmt: skip
    assert guard.judge(7, 120 * MB, 100 * MB, 17.1) == (
        "it held 120 MB of memory, more than the 100 MB it may"
    )


def test_what_comes_down_in_time_stays():
    guard = MemoryGuard()
    for at, held in ((0, 150), (8, 90), (10, 150), (24, 150)):
        assert not guard.judge(7, held * MB, 100 * MB, at)
    assert guard.judge(7, 150 * MB, 100 * MB, 25.0)


def test_twice_the_limit_is_not_waited_for_and_without_a_limit_nothing_is_too_much():
    guard = MemoryGuard()
    assert "it held 200 MB" in guard.judge(7, 200 * MB, 100 * MB, 0.0)
    assert not guard.judge(8, 10_000 * MB, 0, 0.0)


def test_a_number_that_comes_again_is_another_process():
    guard = MemoryGuard()
    guard.judge(7, 150 * MB, 100 * MB, 0.0)
    guard.keep_only({8: None})
    assert not guard.judge(7, 150 * MB, 100 * MB, 60.0)


class Worker:
    def __init__(self, pid, limit_mb, *jobs):
        self.pid, self.jobs = pid, set(jobs)
        self.config = Config(pipeline=PipelineConfig(memory_limit_mb=limit_mb))
        self.ended_by = ""

    def end(self, why):
        self.ended_by = why


@pytest.mark.parametrize("children", [0, 5000])
def test_the_daemon_ends_a_worker_with_jobs_and_counts_not_what_its_children_hold(children):
    """What signs a recording is a child, and may hold as much as the recording."""
    small, large, spare, free = workers = [
        Worker(1, 100, "a"), Worker(2, 100, "b", "c"), Worker(3, 100), Worker(4, 0, "d")
    ]  # fmt: skip
    pool = SimpleNamespace(workers=workers)
    keeper = Doorkeeper(
        DaemonConfig(), cast("JobBook", SimpleNamespace()), cast("WorkerPool", pool)
    )
    held = {1: 90, 2: 200, 3: 900, 4: 900}
    spent = {pid: Spent(0.0, (mb + children) * MB, mb * MB) for pid, mb in held.items()}
    keeper._end_too_large(0.0, spent)
    assert large.ended_by == "it held 200 MB of memory, more than the 100 MB it may"
    assert (small.ended_by, spare.ended_by, free.ended_by) == ("", "", "")


def test_it_looks_again_and_again(monkeypatch):
    looks = []
    keeper = Doorkeeper(
        DaemonConfig(),
        cast("JobBook", SimpleNamespace(list_records=list)),
        cast("WorkerPool", SimpleNamespace(workers=[])),
    )
    monkeypatch.setattr("livefuse.control.daemon.doorkeeper._LOOK_S", 0.01)
    monkeypatch.setattr(keeper, "_end_too_large", lambda now_s, _spent: looks.append(now_s))

    async def run():
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            task = group.create_task(keeper.run())
            while len(looks) < 3:  # noqa: ASYNC110 - a thread of its own is waited for
                await asyncio.sleep(0.01)
            task.cancel()

    asyncio.run(run())
    assert looks == sorted(looks)
