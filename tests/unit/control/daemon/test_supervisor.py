"""Jobs are brought through everything that may happen to their workers; these are made of paper."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config, DaemonConfig, RecordConfig
from livefuse.control.api.views import JobView, Links, OutputList, Spec
from livefuse.control.daemon.audit import DaemonAudit
from livefuse.control.daemon.book import JobBook
from livefuse.control.daemon.database import Database
from livefuse.control.daemon.store import JobStore
from livefuse.control.daemon.supervisor import Supervisor
from livefuse.control.daemon.worker import Reply, WorkerLostError
from livefuse.errors import ConfigError, JobCapacityError, JobError, JobNotFoundError
from livefuse.safety.audit import AuditLog
from livefuse.safety.keys import KeyRing
from livefuse.safety.seal import RingSealer
from livefuse.workers.process import JobBeat
from tests.unit.control.figures import make_statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.control.daemon.pool import WorkerPool

SPEC = Spec(source="test:", operations=())
LINKS = Links(flv="", ts="", snapshot="", whip="", whep="", events="")


class PaperWorker:
    number, pid, ended_by = 1, 1, ""

    def __init__(self, supervisor):
        self.supervisor = supervisor
        self.has_ended = asyncio.Event()
        self.beats = {}
        self.asked = []
        self.refusal = None

    async def ask(self, method, path, value=None, **_):
        await asyncio.sleep(0)
        self.asked.append(f"{method} {path}")
        if self.has_ended.is_set():
            raise WorkerLostError("gone")
        if self.refusal is not None and method == "POST":
            raise self.refusal
        if path.endswith("/outputs"):
            return Reply(200, msgspec.json.encode(OutputList([])))
        view = JobView(
            id="a", state="stopped", error="", spec=None, statistics=make_statistics(), links=LINKS
        )
        return Reply(200, msgspec.json.encode(view))

    def beat(self, **said):
        self.beats = {"a": JobBeat(id="a", **{"phase": "running", **said})}
        self.supervisor.get_life("a").news.set()

    def end(self, why=""):
        self.ended_by = why
        self.has_ended.set()
        self.supervisor.get_life("a").news.set()

    def describe_end(self):
        return self.ended_by or "it was ended by SIGKILL"


class PaperPool:
    """Gives the workers that are there, one after the other; then whoever wants one waits."""

    def __init__(self):
        self.given, self.left = [], []
        self.workers = []
        self.refusal = None
        self.make: Callable[[], Any] = lambda: None
        self.is_empty = False

    async def acquire(self, _job_id):
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        if self.is_empty:
            await asyncio.Event().wait()
        self.given.append(self.make())
        return self.given[-1]

    async def release(self, worker, _job_id, state="clean"):
        self.left.append(state)
        if state == "unknown":
            worker.has_ended.set()


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for is written in a thread
            await asyncio.sleep(0.005)


def supervise(tmp_path, use, **settings):
    """Run `use(supervisor, pool)` with one job `a` that is submitted."""
    config = Config(
        daemon=DaemonConfig(admission=False, **settings), record=RecordConfig(folder=str(tmp_path))
    )

    async def run():
        clock = SystemClock()
        with contextlib.closing(Database(tmp_path / "jobs.db")) as database:
            book = JobBook(JobStore(database, clock, RingSealer(KeyRing(tmp_path, clock))))
            await book.open()
            if book.find("a") is None:
                await book.create("a", "op", "op", SPEC)
            pool = PaperPool()
            async with asyncio.TaskGroup() as group:
                audit = DaemonAudit(AuditLog(tmp_path / "audit", clock))
                supervisor = Supervisor(config, book, cast("WorkerPool", pool), group, audit)
                pool.make = lambda: PaperWorker(supervisor)
                await use(supervisor, pool)
                supervisor.cancel()
            book.close()

    asyncio.run(run())


def phase(supervisor):
    return supervisor.book.get("a").phase


def test_a_job_runs_degrades_and_ends_with_its_source(tmp_path):
    async def use(supervisor, pool):
        record = await supervisor.start("a")
        assert (record.phase, record.is_wanted) == ("loading", True)
        worker = pool.given[0]
        for said, expected in (
            ({"health": "ONLINE"}, "running"),
            ({"health": "DEGRADED_INPUT", "reason": "the input is lost"}, "degraded"),
        ):
            worker.beat(**said)
            await until(lambda wanted=expected: phase(supervisor) == wanted)
        assert supervisor.book.get("a").reason == "the input is lost"
        with pytest.raises(JobError, match="is running"):
            await supervisor.start("a")
        worker.beat(phase="stopped")
        await until(lambda: phase(supervisor) == "stopped")
        record = supervisor.book.get("a")
        assert (record.reason, record.is_wanted) == ("its source has ended", False)
        await until(lambda: pool.left == ["clean"])
        assert worker.asked[-1] == "DELETE /v1/jobs/a"
        assert supervisor.get_life("a").figures is not None
        await supervisor.start("a")
        assert len(pool.given) == 2

    supervise(tmp_path, use)


def test_a_lost_worker_is_replaced_until_it_is_too_much(tmp_path):
    async def use(supervisor, pool):
        await supervisor.start("a")
        for number in (1, 2):
            pool.given[-1].end()
            await until(lambda wanted=number + 1: len(pool.given) == wanted)
            await until(lambda wanted=number: supervisor.book.get("a").restarts == wanted)
        pool.given[-1].end()
        await until(lambda: phase(supervisor) == "failed")
        record = supervisor.book.get("a")
        assert "3 workers within a minute" in record.reason
        assert not record.is_wanted
        assert record.ending.error_type == "JobError"

    supervise(tmp_path, use, max_deaths_per_min=3)


def test_a_live_job_whose_process_is_too_large_goes_on_in_another(tmp_path):
    """C30: with its reason; one that works on a file has failed, it would only begin anew."""
    error = "the process holds 412 MB of memory, more than the 400 MB it may"

    async def use(supervisor, pool):
        await supervisor.start("a")
        first = pool.given[0]
        first.beat(health="ONLINE")
        await until(lambda: phase(supervisor) == "running")
        first.beat(phase="failed", error=error, error_type="JobMemoryError")
        await until(lambda: len(pool.given) == 2)
        assert first.ended_by == error
        await until(lambda: supervisor.book.get("a").restarts == 1)
        record = supervisor.book.get("a")
        assert (record.phase, record.is_wanted) == ("loading", True)
        assert record.reason == f"its worker was lost: {error}"
        pool.given[1].beat(health="ONLINE")
        await until(lambda: phase(supervisor) == "running")
        pool.given[1].beat(phase="failed", error=error, error_type="JobError")
        await until(lambda: phase(supervisor) == "failed")
        assert supervisor.book.get("a").reason == error
        assert len(pool.given) == 2

    supervise(tmp_path, use)


def test_a_worker_that_is_lost_while_it_is_told_is_replaced(tmp_path):
    async def use(supervisor, pool):
        make = pool.make
        first = make()
        first.has_ended.set()
        workers = [first]
        pool.make = lambda: workers.pop() if workers else make()
        await supervisor.start("a")
        assert pool.given[0] is first
        assert pool.left == ["unknown"]
        assert len(pool.given) == 2

    supervise(tmp_path, use)


def test_what_a_worker_refuses_fails_and_is_told(tmp_path):
    async def use(supervisor, pool):
        make = pool.make

        def refuse():
            worker = make()
            worker.refusal = ConfigError("no such thing", hint="do")
            return worker

        pool.make = refuse
        with pytest.raises(ConfigError, match="no such thing"):
            await supervisor.start("a")
        assert pool.left == ["clean"]
        record = supervisor.book.get("a")
        assert (record.phase, record.is_wanted) == ("failed", False)
        pool.refusal = JobCapacityError("no worker can be started")
        with pytest.raises(JobCapacityError):
            await supervisor.start("a")
        assert phase(supervisor) == "failed"

    supervise(tmp_path, use)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_job_that_waits_for_a_worker_can_be_stopped(tmp_path, is_deleted):
    async def use(supervisor, pool):
        pool.is_empty = True
        async with asyncio.TaskGroup() as group:
            group.create_task(supervisor.start("a"))
            await until(lambda: phase(supervisor) == "loading")
            await until(lambda: supervisor.get_life("a").task is not None)
            if is_deleted:
                await supervisor.delete("a")
                with pytest.raises(JobNotFoundError):
                    supervisor.book.get("a")
            else:
                record = await supervisor.stop("a")
                assert (record.phase, record.is_wanted) == ("stopped", False)
        assert not pool.given

    supervise(tmp_path, use)


def test_what_drains_goes_on_with_the_next_and_what_was_stopped_does_not(tmp_path):
    async def end(supervisor, pool):
        await supervisor.start("a")
        pool.given[0].beat(health="ONLINE")
        await until(lambda: phase(supervisor) == "running")
        await supervisor.drain()
        record = supervisor.book.get("a")
        assert (record.phase, record.reason) == ("stopped", "livefuse is ending")
        assert record.is_wanted
        assert "POST /v1/jobs/a/stop" in pool.given[0].asked
        with pytest.raises(JobCapacityError):
            await supervisor.start("a")

    async def go_on(supervisor, pool):
        await supervisor.resume()
        await until(lambda: pool.given)
        pool.given[0].beat(health="ONLINE")
        await until(lambda: phase(supervisor) == "running")
        assert not (await supervisor.stop("a")).is_wanted

    async def rest(supervisor, pool):
        await supervisor.resume()
        assert phase(supervisor) == "stopped"
        assert not pool.given

    for use in (end, go_on, rest):
        supervise(tmp_path, use)


def test_a_daemon_that_was_killed_while_it_stopped_a_job_has_stopped_it(tmp_path):
    async def use(supervisor, _pool):
        await supervisor.book.move("a", "loading", is_wanted=True)
        await supervisor.book.move("a", "stopping", is_wanted=False)
        await supervisor.resume()
        assert phase(supervisor) == "stopped"

    supervise(tmp_path, use)
