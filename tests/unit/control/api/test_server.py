"""The address where players look in, over real sockets."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import aiohttp
import msgspec
import pytest
import uvloop
import yarl

from livefuse.clock import SystemClock
from livefuse.config import Config, HttpConfig
from livefuse.control.api.guard import is_own_host
from livefuse.control.api.perimeter import Perimeter
from livefuse.control.api.server import ApiServer, bind_listener
from livefuse.errors import ConfigError, JobNotFoundError
from livefuse.telemetry import Telemetry
from tests.unit.control.figures import make_statistics

if TYPE_CHECKING:
    from livefuse.control.jobs import JobManager

pytestmark = pytest.mark.wire

KEY = "a-key-of-twenty-letters"
BEARER = {"Authorization": f"Bearer {KEY}"}


class FakeViewer:
    """A queue of at most `limit` chunks, as a stream keeps for each player."""

    def __init__(self, stream, wake):
        self.stream, self.wake = stream, wake
        self.waiting = []

    def read(self):
        if self.waiting:
            return self.waiting.pop(0)
        return None if self.stream.ended else b""

    def close(self):
        self.stream.viewers.discard(self)


class FakeStream:
    def __init__(self, limit=4):
        self.viewers = set()
        self.ended = False
        self.limit = limit
        self.dropped = 0

    def subscribe(self, wake):
        viewer = FakeViewer(self, wake)
        self.viewers.add(viewer)
        return viewer

    def send(self, data):
        for viewer in list(self.viewers):
            if len(viewer.waiting) >= self.limit:
                viewer.waiting.clear()
                self.dropped += 1
            viewer.waiting.append(data)
            viewer.wake()

    def end(self):
        self.ended = True
        for viewer in list(self.viewers):
            viewer.wake()


class FakeJob:
    def __init__(self, **changes):
        self.live = {"flv": FakeStream(), "ts": FakeStream()}
        self.telemetry = Telemetry(SystemClock())
        self.changes = changes

    def statistics(self):
        return make_statistics(**self.changes)

    def wait(self, _timeout_s=None):
        return False


class FakeManaged:
    spec, error, phase, owner = None, "", "running", ""

    def __init__(self, job_id, job):
        self.job_id, self.job = job_id, job


class FakeManager:
    """The job manager's side of the seam: `jobs` by id."""

    worker = SimpleNamespace(audit=SimpleNamespace(read_figures=lambda: ({}, False)))

    def __init__(self, jobs):
        self.managed = {name: FakeManaged(name, job) for name, job in jobs.items()}

    def list_managed(self):
        return list(self.managed.values())

    def list_measured(self):
        return [(m.job.statistics(), m.job.telemetry) for m in self.list_managed()]

    def get(self, job_id):
        if job_id not in self.managed:
            raise JobNotFoundError(f"there is no job {job_id!r}")
        return self.managed[job_id]

    def find_owner(self, job_id):
        return self.managed[job_id].owner if job_id in self.managed else None

    def get_status(self, job_id):
        return self.get(job_id).job.statistics()

    def get_running(self, job_id):
        return self.get(job_id).job


async def until(condition, timeout_s=5.0):
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other threads
            await asyncio.sleep(0.01)


def serve(use, jobs=None, **config):
    """Run `use(server, http, jobs)` against a server on a free port."""

    async def run():
        served = {"main": FakeJob()} if jobs is None else jobs
        tree = Config(http=HttpConfig(**{"port": 0, **config}))
        server = ApiServer(tree, cast("JobManager", FakeManager(served)), KEY)
        await server.start()
        try:
            async with aiohttp.ClientSession(server.base_url, headers=BEARER) as http:
                await use(server, http, served)
        finally:
            await server.close()

    uvloop.run(run())


def test_status_metrics_and_page():
    async def use(server, http, _jobs):
        async with http.get("/v1/jobs/main/status") as answer:
            assert answer.status == 200
            assert json.loads(await answer.text())["fps_out"] == 29.7
        async with http.get("/metrics") as answer:
            assert 'livefuse_frames_total{job_id="main",side="out"} 297.0' in await answer.text()
        async with http.get("/") as answer:
            assert answer.content_type == "text/html"
            assert "livefuse" in await answer.text()
        async with http.get("/healthz") as answer:
            assert answer.status == 200
        async with http.get("/readyz") as answer:
            assert answer.status == 200

    serve(use)


@pytest.mark.parametrize(
    "jobs", [{}, {"main": FakeJob(health="LOADING")}, {"main": FakeJob(frames_out=0)}]
)
def test_readiness_waits_for_a_live_job(jobs):
    async def use(_server, http, _jobs):
        async with http.get("/readyz") as answer:
            assert answer.status == 503

    serve(use, jobs)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/web/index.html", 200),
        ("/web/../api/key.py", 404),
        ("/web/%2e%2e/api/key.py", 404),
        ("/v1/jobs", 401),
        ("/v1/jobs/main/live.flv", 401),
        ("/v1/openapi.json", 401),
        ("/metrics", 401),
        ("/nothing", 401),
    ],
)
def test_without_the_key_only_the_page_is_open(path, status):
    async def use(server, _http, _jobs):
        async with aiohttp.ClientSession() as stranger:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
                url = yarl.URL(server.base_url + path, encoded=True)
                async with stranger.get(url, headers=headers) as answer:
                    assert answer.status == status
                    assert KEY not in await answer.text()

    serve(use)


def test_a_player_may_give_the_key_in_the_address():
    async def use(server, _http, _jobs):
        async with aiohttp.ClientSession() as player:
            async with player.get(server.get_url("/v1/jobs/main/status")) as answer:
                assert answer.status == 200
            async with player.get(f"{server.base_url}/v1/jobs?key=wrong") as answer:
                assert answer.status == 401
                assert answer.content_type == "application/problem+json"
                assert "printed" in (await answer.json(content_type=None))["hint"]

    serve(use)


def test_a_foreign_page_changes_nothing():
    async def use(server, http, _jobs):
        for origin, status in (("http://evil.example", 403), (server.base_url, 422)):
            headers = {"Origin": origin}
            async with http.post("/v1/jobs", json={"nothing": 1}, headers=headers) as answer:
                assert answer.status == status

    serve(use)


def test_the_page_contacts_nobody_else():
    async def use(_server, http, _jobs):
        async with http.get("/") as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "://" not in policy
            assert "unsafe" not in policy

    serve(use)


@pytest.mark.parametrize(
    "path", ["/v1/jobs/other/live.flv", "/v1/jobs/other/status", "/v1/jobs/main/live.avi"]
)
def test_what_is_not_there_is_a_404(path):
    async def use(_server, http, _jobs):
        async with http.get(path) as answer:
            assert answer.status == 404

    serve(use)


@pytest.mark.parametrize(("kind", "media_type"), [("flv", "video/x-flv"), ("ts", "video/mp2t")])
def test_a_player_gets_the_stream_to_its_end(kind, media_type):
    async def use(_server, http, jobs):
        stream = jobs["main"].live[kind]
        async with http.get(f"/v1/jobs/main/live.{kind}") as answer:
            assert answer.headers["Content-Type"] == media_type
            await until(lambda: stream.viewers)

            def feed():  # packets come from another thread
                for number in range(3):
                    stream.send(bytes([number]) * 100)
                stream.end()

            threading.Thread(target=feed).start()
            assert await answer.read() == b"\0" * 100 + b"\1" * 100 + b"\2" * 100
        await until(lambda: not stream.viewers)

    serve(use)


def test_a_player_that_hangs_up_is_let_go():
    async def use(_server, http, jobs):
        stream = jobs["main"].live["flv"]
        answer = await http.get("/v1/jobs/main/live.flv")
        await until(lambda: stream.viewers)
        answer.close()
        await until(lambda: not stream.viewers)

    serve(use)


def test_one_player_too_many_is_told():
    async def use(_server, http, jobs):
        async with http.get("/v1/jobs/main/live.flv"), http.get("/v1/jobs/main/live.ts"):
            await until(lambda: all(s.viewers for s in jobs["main"].live.values()))
            async with http.get("/v1/jobs/main/live.flv") as answer:
                assert answer.status == 503
                assert "http.max_viewers" in await answer.text()
        await until(lambda: not any(s.viewers for s in jobs["main"].live.values()))
        async with http.get("/v1/jobs/main/live.flv") as answer:
            assert answer.status == 200

    serve(use, max_viewers=2)


def test_a_player_that_reads_nothing_holds_up_nobody():
    """Its bytes stop in small buffers; what is sent on is dropped in its own queue."""

    async def use(server, http, jobs):
        stream = jobs["main"].live["flv"]
        chunk = bytes(64 * 1024)
        request = f"GET /v1/jobs/main/live.flv?key={KEY} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with contextlib.closing(socket.socket()) as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            idle.connect(("127.0.0.1", server.port))
            idle.sendall(request.encode())
            await until(lambda: stream.viewers)
            sent = 0
            async with asyncio.timeout(10):
                while stream.dropped < 5:
                    stream.send(chunk)
                    sent += 1
                    await asyncio.sleep(0.001)
            assert sent < 60
            async with http.get("/healthz") as answer:
                assert answer.status == 200
        await until(lambda: not stream.viewers)

    serve(use)


@pytest.mark.parametrize(
    ("header", "answered"),
    [
        ("127.0.0.1:8090", True),
        ("localhost:8090", True),
        ("[::1]:8090", True),
        ("192.168.1.5", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:8090", False),
        ("localhost.evil.example", False),
        ("", False),
        ("a b", False),
    ],
)
def test_only_our_own_names_are_answered(header, answered):
    assert is_own_host(header, frozenset({"localhost"})) is answered


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("", "127.0.0.1:8090", True),
        ("http://127.0.0.1:8090", "127.0.0.1:8090", True),
        ("http://127.0.0.1:8091", "127.0.0.1:8090", False),
        ("null", "127.0.0.1:8090", False),
        ("https://evil.example", "127.0.0.1:8090", False),
    ],
)
def test_only_our_own_page_may_change_things(origin, host, own):
    assert Perimeter().is_own_origin(origin, host) is own


def test_a_foreign_name_is_refused_on_the_wire():
    async def use(_server, http, _jobs):
        for path in ("/", "/v1/jobs/main/live.flv", "/v1/jobs/main/status"):
            async with http.get(path, headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403

    serve(use)


def test_a_taken_port_gives_the_next_free_one():
    with bind_listener("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind_listener("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] < port + 20


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1"):
        bind_listener("192.0.2.1", 8090)


def test_closing_sends_players_away_at_once():
    async def use(server, http, jobs):
        stream = jobs["main"].live["flv"]
        answer = await http.get("/v1/jobs/main/live.flv")
        await until(lambda: stream.viewers)
        started = time.monotonic()
        await server.close()
        assert time.monotonic() - started < 5
        assert not stream.viewers
        answer.close()

    serve(use)


def test_the_status_is_whole_json():
    async def use(_server, http, _jobs):
        async with http.get("/v1/jobs/main/status") as answer:
            told = msgspec.json.decode(await answer.read())
        assert told["outputs"][0]["connected"] is True
        assert "steps" in told

    serve(use)
