"""Jobs go on in other workers when their configuration has changed; no others do."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
import structlog

from livefuse.config import Config, DaemonConfig, EncodeConfig, GrpcConfig, LimitsConfig
from livefuse.control.api.caller import LOCAL
from livefuse.control.api.views import JobPhase, JobView, Spec
from livefuse.control.daemon.child_settings import SETTINGS_PATH, take_settings
from livefuse.control.daemon.jobs import _check
from livefuse.control.daemon.pool import WorkerPool
from livefuse.control.daemon.reloader import Reloader
from livefuse.control.daemon.worker import Reply
from livefuse.errors import AuditError, ConfigError, DaemonTimeoutError, JobCapacityError
from tests.unit.control.daemon.test_supervisor import LINKS, PaperWorker, phase, supervise, until

if TYPE_CHECKING:
    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.folder import DaemonFolder


class RunningWorker(PaperWorker):
    """Says that its job is in `state`."""

    state: JobPhase = "running"
    error = ""

    async def ask(self, method: str, path: str, value: Any = None, **_: Any) -> Any:
        reply = await super().ask(method, path, value)
        if method != "GET" or path.endswith("/outputs"):
            return reply
        view = JobView(
            id="a", state=self.state, error=self.error, spec=None, statistics=None, links=LINKS
        )
        return Reply(200, msgspec.json.encode(view))


async def run_job(supervisor, pool):
    pool.make = lambda: RunningWorker(supervisor)
    await supervisor.start("a")
    pool.given[0].beat(health="ONLINE")
    await until(lambda: phase(supervisor) == "running")
    return supervisor.get_life("a")


def test_a_job_goes_on_in_another_worker_and_that_is_no_loss(tmp_path):
    async def use(supervisor, pool):
        life = await run_job(supervisor, pool)
        life.ask("renew")
        await until(lambda: len(pool.given) == 2 and life.worker is pool.given[1])
        record = supervisor.book.get("a")
        assert (record.phase, record.reason) == ("loading", "its configuration changed")
        assert (record.is_wanted, record.restarts, life.asked) == (True, 0, "")
        assert pool.given[0].asked[-2:] == ["POST /v1/jobs/a/stop", "DELETE /v1/jobs/a"]
        assert pool.left == ["clean"]
        pool.given[1].beat(health="ONLINE")
        await until(lambda: phase(supervisor) == "running")
        assert (await supervisor.stop("a")).phase == "stopped"

    supervise(tmp_path, use, max_deaths_per_min=1)


@pytest.mark.parametrize(("way", "is_wanted"), [("stop", False), ("drain", True)])
def test_to_be_ended_is_more_than_to_go_on(tmp_path, way, is_wanted):
    async def use(supervisor, pool):
        life = await run_job(supervisor, pool)
        life.ask("renew")
        await (supervisor.stop("a") if way == "stop" else supervisor.drain())
        record = supervisor.book.get("a")
        assert (record.phase, record.is_wanted) == ("stopped", is_wanted)
        assert len(pool.given) == 1

    supervise(tmp_path, use)


def test_a_job_that_waits_for_its_next_worker_can_be_stopped(tmp_path):
    async def use(supervisor, pool):
        life = await run_job(supervisor, pool)
        pool.is_empty = True
        life.ask("renew")
        await until(lambda: phase(supervisor) == "loading")
        life.ask("renew")  # again: it is on its way already
        assert (await supervisor.stop("a")).phase == "stopped"
        assert not supervisor.book.get("a").is_wanted

    supervise(tmp_path, use)


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_a_job_that_has_ended_meanwhile_does_not_begin_again(tmp_path, state):
    async def use(supervisor, pool):
        life = await run_job(supervisor, pool)
        pool.given[0].state, pool.given[0].error = state, "no such file"
        life.ask("renew")
        await until(lambda: phase(supervisor) == state)
        assert len(pool.given) == 1
        reason = supervisor.book.get("a").reason
        assert reason == ("no such file" if state == "failed" else "its source has ended")

    supervise(tmp_path, use)


def test_a_worker_that_is_lost_meanwhile_is_replaced_once(tmp_path):
    async def use(supervisor, pool):
        life = await run_job(supervisor, pool)
        pool.given[0].has_ended.set()
        life.ask("renew")
        await until(lambda: len(pool.given) == 2 and life.worker is pool.given[1])
        pool.given[1].beat(health="ONLINE")
        await until(lambda: phase(supervisor) == "running")
        assert (len(pool.given), supervisor.book.get("a").restarts) == (2, 1)

    supervise(tmp_path, use)


def test_what_its_next_worker_refuses_fails_it(tmp_path):
    async def use(supervisor, pool):
        life = await run_job(supervisor, pool)

        def refuse():
            worker = RunningWorker(supervisor)
            worker.refusal = ConfigError("not like this")
            return worker

        pool.make = refuse
        life.ask("renew")
        await until(lambda: phase(supervisor) == "failed")
        record = supervisor.book.get("a")
        assert (record.reason, record.is_wanted) == ("not like this", False)

    supervise(tmp_path, use)


class Handle:
    """A worker as the pool sees it."""

    def __init__(self, *jobs: str, is_ready: bool = True, config: Config | None = None) -> None:
        self.jobs = set(jobs)
        self.is_ready, self.has_ended = asyncio.Event(), asyncio.Event()
        if is_ready:
            self.is_ready.set()
        self.is_worn = self.is_outdated = False
        self.ended_by, self.questions, self.number = "", 0, 1
        self.config = config or Config()
        self.told: list[Config] = []

    @property
    def is_alive(self) -> bool:
        return self.is_ready.is_set() and not (self.ended_by or self.is_worn or self.is_outdated)

    def end(self, why: str = "") -> None:
        self.ended_by = why

    async def ask(self, _method: str, path: str, value: Config, **_: Any) -> None:
        assert path == SETTINGS_PATH
        self.told.append(value)


def make_pool(group: asyncio.TaskGroup, *workers: Handle, **settings: Any) -> WorkerPool:
    config = Config(daemon=DaemonConfig(**settings))
    pool = WorkerPool(config, cast("DaemonFolder", None), 1, group)
    pool.workers = cast("Any", list(workers))
    return pool


def test_no_worker_of_before_takes_a_job_more():
    async def run():
        async with asyncio.TaskGroup() as group:
            old, asked, idle, starting = Handle("a"), Handle(), Handle(), Handle(is_ready=False)
            asked.questions = 1
            pool = make_pool(group, old, asked, idle, starting, jobs_per_worker=4)
            pool.set_config(Config(encode=EncodeConfig(threads=1)), renews=True)
            assert all(one.is_outdated for one in (old, asked, idle, starting))
            new = Handle()
            pool.workers.append(cast("Any", new))
            assert cast("Any", await pool.acquire("b")) is new
            assert cast("Any", await pool.borrow()) is new
            pool._end_retired()
            ended = [bool(one.ended_by) for one in (old, asked, idle, starting, new)]
            assert ended == [False, False, True, True, False]
            await pool.release(cast("Any", old), "a")
            assert old.ended_by

    asyncio.run(run())


def test_what_changes_at_once_leaves_workers_as_they_are():
    async def run():
        async with asyncio.TaskGroup() as group:
            workers = Handle("a"), Handle(), Handle(), Handle(is_ready=False)
            pool = make_pool(group, *workers, spare_workers=2)
            config = Config(daemon=DaemonConfig(spare_workers=1))
            pool.set_config(config, renews=False)
            # One idle worker is too many now, and one that starts has not been told.
            assert [one.is_outdated for one in workers] == [False, True, False, True]

    asyncio.run(run())


def test_a_worker_that_may_have_kept_a_look_at_a_job_takes_no_other():
    """It did not answer whether the job could be; what it made for that may stay in it."""

    async def run():
        async with asyncio.TaskGroup() as group:
            slow, other = Handle(), Handle()
            pool = make_pool(group, slow, spare_workers=1)

            async def ask(*_args: Any, **_named: Any) -> None:
                raise DaemonTimeoutError("no answer in time")

            slow.ask = ask  # type: ignore[method-assign] # this one is slow
            daemon = cast("Daemon", SimpleNamespace(pool=pool))
            with pytest.raises(DaemonTimeoutError):
                await _check(daemon, LOCAL, "a", Spec(source="test:"))
            assert slow.is_worn
            assert pool._count_idle() == 0
            pool.workers.append(cast("Any", other))
            assert cast("Any", await pool.borrow()) is other
            pool._end_retired()
            assert (bool(slow.ended_by), bool(other.ended_by)) == (True, False)

    asyncio.run(run())


class PaperDaemon:
    """What a reloader needs."""

    def __init__(self, *workers: Handle) -> None:
        self.config = Config()
        self.sections: list[list[str]] = []
        self.is_logged = True
        self.renewed: list[Config] = []
        self.limits: list[LimitsConfig] = []
        self.pool = SimpleNamespace(
            workers=list(workers), set_config=self._set_config, prepare=self._prepare
        )
        self.supervisor = SimpleNamespace(
            is_draining=False,
            config=self.config,
            doorkeeper=SimpleNamespace(set_config=lambda _: None),
            peek=lambda _: SimpleNamespace(worker=workers[0], asked="", ask=self._ask),
        )
        self.audit = SimpleNamespace(note_reloaded=self._note)
        record = SimpleNamespace(spec=SimpleNamespace(operations=(), targets=()), phase="running")
        self.book = SimpleNamespace(find=lambda _: record)

    def _set_config(self, config: Config, *, renews: bool) -> None:
        self.renewed += [config] if renews else []

    async def _prepare(self) -> None:
        raise JobCapacityError("no worker can be started")

    async def _note(self, sections: list[str]) -> None:
        if not self.is_logged:
            raise AuditError("the disc is full")
        self.sections.append(sections)

    def _ask(self, what: str) -> None:
        raise AssertionError(what)

    def reload(self, *results: Config | Exception) -> list[Any]:
        """Reload once for each of `results`; return what was logged."""

        async def run() -> None:
            asked = asyncio.Event()
            reader = iter(results)

            def read() -> Config:
                result = next(reader)
                if isinstance(result, Exception):
                    raise result
                return result

            reloader = Reloader(cast("Daemon", self), read, self.limits.append, asked)
            async with asyncio.TaskGroup() as group:
                task = group.create_task(reloader.run())
                for number in range(1, len(results) + 1):
                    asked.set()
                    await until(lambda wanted=number: len(told) >= wanted)
                await asyncio.sleep(0.02)
                task.cancel()

        with structlog.testing.capture_logs() as told:
            asyncio.run(run())
        return told


def test_what_cannot_be_read_changes_nothing():
    daemon = PaperDaemon()
    told = daemon.reload(ConfigError("no such file"), ZeroDivisionError("odd"))
    assert [one["event"] for one in told] == [
        "the configuration stays as it is",
        "a reload failed",
    ]
    assert told[0]["cause"] == "no such file"
    assert daemon.config == Config()


def test_what_cannot_be_logged_is_not_done():
    daemon = PaperDaemon()
    daemon.is_logged = False
    (told,) = daemon.reload(Config(limits=LimitsConfig(connections=9)))
    assert "the disc is full" in told["cause"]
    assert (daemon.config, daemon.limits) == (Config(), [])


def test_limits_are_told_and_the_rest_waits():
    async def make() -> Handle:
        return Handle()

    worker = asyncio.run(make())
    daemon = PaperDaemon(worker)
    limits = LimitsConfig(connections=9)
    told = daemon.reload(Config(limits=limits, grpc=GrpcConfig(enabled=True)))
    assert (told[0]["keys"], told[1]["keys"]) == ("grpc.enabled", "limits.connections")
    assert daemon.limits == [limits]
    assert daemon.sections == [["limits"]]
    assert worker.told == [daemon.config] == [Config(limits=limits)]
    assert daemon.renewed == []
    assert daemon.supervisor.config is daemon.config


def test_jobs_stay_where_they_are_when_there_is_no_other_worker():
    async def make() -> Handle:
        return Handle("a")

    daemon = PaperDaemon(asyncio.run(make()))
    told = daemon.reload(Config(encode=EncodeConfig(threads=1)))
    assert told[-1]["event"] == "jobs keep the configuration that they have"
    assert daemon.renewed == [daemon.config]


def test_a_worker_takes_over_what_it_may_and_no_more():
    before = Config()
    config = Config(limits=LimitsConfig(connections=9), encode=EncodeConfig(threads=1))
    config = msgspec.structs.replace(
        config, record=msgspec.structs.replace(config.record, folder="there")
    )
    worker = SimpleNamespace(config=before)
    api = SimpleNamespace(manager=SimpleNamespace(worker=worker), config=before)
    limits: list[LimitsConfig] = []
    perimeter = SimpleNamespace(limits=before.limits, set_limits=limits.append)
    old = structlog.get_config()
    try:
        take_settings(cast("Any", api), cast("Any", perimeter), config)
    finally:
        structlog.configure(**old)
    assert api.config is config
    assert limits == [config.limits]
    assert worker.config == msgspec.structs.replace(before, record=config.record)
