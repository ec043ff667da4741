"""Spans of requests go to the collector that is named, and nowhere else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from livefuse.config import TracingConfig
from livefuse.control.api.tracing import Tracing, get_trace
from tests.collector import Collector
from tests.contract.repo import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        yield server


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


def test_what_is_asked_of_another_process_is_carried_on(collector: Collector) -> None:
    """In the request's own task alone: the connection's next request has its own, or none."""
    tracing = Tracing(TracingConfig(endpoint=collector.url), "1.2", "daemon")
    seen = []

    async def handle(_request: web.Request) -> web.Response:
        seen.append(dict(get_trace()))
        return web.Response()

    async def run() -> None:
        app = web.Application(middlewares=[tracing.trace])
        app.router.add_get("/v1/jobs/{id}", handle)
        app.router.add_get("/v1/jobs/{id}/events", handle)
        async with TestClient(TestServer(app)) as client:
            for path in ("/v1/jobs/a", "/v1/jobs/a/events", "/v1/jobs/a"):
                await client.get(path, headers={"traceparent": PARENT, "tracestate": "them=1"})
        assert get_trace() == {}

    asyncio.run(run())
    tracing.close()
    first, endless, second = seen
    assert endless == {}
    assert first["tracestate"] == "them=1"
    version, trace, span, flags = first["traceparent"].split("-")
    assert (version, trace, flags) == ("00", PARENT.split("-")[1], "01")
    assert span not in (PARENT.split("-")[2], second["traceparent"].split("-")[2])
    assert {(one.part, one.span) for one in collector.list_spans()} >= {("daemon", span)}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/cam7/token?key=hunter2",
        "/v1/jobs/rtmp:%2F%2Fhost%2Fapp%2Fhunter2/token",
        "/nowhere/hunter2",
    ],
)
def test_nothing_secret_is_in_a_span(collector: Collector, path: str) -> None:
    """C76: neither the key of a query, nor what somebody put in the place of an id."""
    ask(Tracing(TracingConfig(endpoint=collector.url), "1.2"), path)
    assert collector.bodies
    assert not any(b"hunter2" in body for _, body in collector.bodies)


def test_without_an_endpoint_nothing_is_made_and_no_package_is_needed() -> None:
    tracing = Tracing(TracingConfig(), "1.2")
    assert ask(tracing) == 503
    assert not hasattr(tracing, "_tracer")


def test_the_daemon_imports_none_of_the_packages() -> None:
    code = (
        "import sys, livefuse.control.daemon.serve as _;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_collector_that_is_not_there_holds_nothing_up() -> None:
    tracing = Tracing(TracingConfig(endpoint="http://127.0.0.1:9/v1/traces"), "1.2")
    assert ask(tracing) == 503
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if "BatchSpan" in name or "Otel" in name], names
