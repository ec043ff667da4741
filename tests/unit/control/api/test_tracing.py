"""Spans of requests go to the collector that is named, and nowhere else."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from livefuse.config import TracingConfig
from livefuse.control.api.tracing import Tracing

if TYPE_CHECKING:
    from collections.abc import Iterator

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector(HTTPServer):
    """Takes OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.bodies: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"


class _Take(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(tracing: Tracing, path: str = "/v1/jobs/cam7/token") -> int:
    """Return the status of one request to an application that makes spans."""

    async def handle(_request: web.Request) -> web.Response:
        with tracing.span("patch"):
            return web.Response(status=503)

    async def run() -> int:
        app = web.Application(middlewares=[tracing.trace])
        app.router.add_get("/v1/jobs/{id}/token", handle)
        app.router.add_get("/v1/jobs/{id}/events", handle)
        async with TestClient(TestServer(app)) as client:
            answer = await client.get(path, headers={"traceparent": PARENT})
            return answer.status

    status = asyncio.run(run())
    tracing.close()
    return status


def test_a_request_is_a_span_below_the_callers(collector: Collector) -> None:
    assert ask(Tracing(TracingConfig(endpoint=collector.url), "1.2")) == 503
    ((path, body),) = collector.bodies
    assert path == "/v1/traces"
    assert b"GET /v1/jobs/{id}/token" in body
    assert b"cam7" in body
    assert b"patch" in body
    assert bytes.fromhex(PARENT.split("-")[1]) in body
    assert bytes.fromhex(PARENT.split("-")[2]) in body


def test_streams_make_none(collector: Collector) -> None:
    # What is done within is a span of its own; the endless request around it is not.
    ask(Tracing(TracingConfig(endpoint=collector.url), "1.2"), "/v1/jobs/cam7/events")
    assert not any(b"GET /v1/jobs/{id}/events" in body for _, body in collector.bodies)


def test_without_an_endpoint_nothing_is_made_and_no_package_is_needed() -> None:
    tracing = Tracing(TracingConfig(), "1.2")
    assert ask(tracing) == 503
    assert not hasattr(tracing, "_tracer")


def test_a_collector_that_is_not_there_holds_nothing_up() -> None:
    tracing = Tracing(TracingConfig(endpoint="http://127.0.0.1:9/v1/traces"), "1.2")
    assert ask(tracing) == 503
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if "BatchSpan" in name or "Otel" in name], names
