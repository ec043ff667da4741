"""The address where players look in, over real sockets."""

import asyncio
import contextlib
import json
import socket
import threading
import time

import aiohttp
import msgspec
import pytest
import uvloop

from livefuse.clock import SystemClock
from livefuse.config import HttpConfig
from livefuse.control.http import HttpServer, bind_listener
from livefuse.control.http_guard import is_own_host
from livefuse.errors import ConfigError
from livefuse.telemetry import Telemetry
from tests.unit.control.figures import make_statistics

pytestmark = pytest.mark.wire


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


async def until(condition, timeout_s=5.0):
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other threads
            await asyncio.sleep(0.01)


def serve(use, jobs=None, **config):
    """Run `use(server, http, jobs)` against a server on a free port."""

    async def run():
        served = {"main": FakeJob()} if jobs is None else jobs
        server = HttpServer(HttpConfig(**{"port": 0, **config}), served)
        await server.start()
        try:
            async with aiohttp.ClientSession(server.base_url) as http:
                await use(server, http, served)
        finally:
            await server.close()

    uvloop.run(run())


def test_status_metrics_and_page():
    async def use(server, http, _jobs):
        async with http.get("/jobs/main/status") as answer:
            assert answer.status == 200
            assert json.loads(await answer.text())["fps_out"] == 29.7
        async with http.get("/metrics") as answer:
            assert 'livefuse_frames_total{job="main",side="out"} 297.0' in await answer.text()
        async with http.get("/") as answer:
            text = await answer.text()
            assert f"{server.base_url}/jobs/main/live.flv" in text
        async with http.get("/healthz") as answer:
            assert answer.status == 200
        async with http.get("/readyz") as answer:
            assert answer.status == 200

    serve(use)


@pytest.mark.parametrize(
    "jobs", [{}, {"main": FakeJob(state="connecting")}, {"main": FakeJob(frames_out=0)}]
)
def test_readiness_waits_for_a_live_job(jobs):
    async def use(_server, http, _jobs):
        async with http.get("/readyz") as answer:
            assert answer.status == 503

    serve(use, jobs)


def test_the_page_escapes_what_comes_from_outside():
    async def use(_server, http, _jobs):
        async with http.get("/") as answer:
            text = await answer.text()
            assert "<script>" not in text
            assert answer.headers["Content-Security-Policy"] == "default-src 'none'"

    serve(use, {"main": FakeJob(source="<script>alert(1)</script>")})


@pytest.mark.parametrize(
    "path", ["/jobs/other/live.flv", "/jobs/other/status", "/jobs/main/live.avi"]
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
        async with http.get(f"/jobs/main/live.{kind}") as answer:
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
        answer = await http.get("/jobs/main/live.flv")
        await until(lambda: stream.viewers)
        answer.close()
        await until(lambda: not stream.viewers)

    serve(use)


def test_one_player_too_many_is_told():
    async def use(_server, http, jobs):
        async with http.get("/jobs/main/live.flv"), http.get("/jobs/main/live.ts"):
            await until(lambda: all(s.viewers for s in jobs["main"].live.values()))
            async with http.get("/jobs/main/live.flv") as answer:
                assert answer.status == 503
                assert "http.max_viewers" in await answer.text()
        await until(lambda: not any(s.viewers for s in jobs["main"].live.values()))
        async with http.get("/jobs/main/live.flv") as answer:
            assert answer.status == 200

    serve(use, max_viewers=2)


def test_a_player_that_reads_nothing_holds_up_nobody():
    """Its bytes stop in small buffers; what is sent on is dropped in its own queue."""

    async def use(server, http, jobs):
        stream = jobs["main"].live["flv"]
        chunk = bytes(64 * 1024)
        with contextlib.closing(socket.socket()) as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            idle.connect(("127.0.0.1", server.port))
            idle.sendall(b"GET /jobs/main/live.flv HTTP/1.1\r\nHost: localhost\r\n\r\n")
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


def test_a_foreign_name_is_refused_on_the_wire():
    async def use(_server, http, _jobs):
        for path in ("/", "/jobs/main/live.flv", "/jobs/main/status"):
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
        answer = await http.get("/jobs/main/live.flv")
        await until(lambda: stream.viewers)
        started = time.monotonic()
        await server.close()
        assert time.monotonic() - started < 5
        assert not stream.viewers
        answer.close()

    serve(use)


def test_the_status_is_whole_json():
    async def use(_server, http, _jobs):
        async with http.get("/jobs/main/status") as answer:
            told = msgspec.json.decode(await answer.read())
        assert told["outputs"][0]["connected"] is True
        assert "steps" in told

    serve(use)
