"""A request to the daemon and what its worker does of it are one trace."""

from __future__ import annotations

import functools

import pytest

from tests.collector import Collector
from tests.daemons import TINY, RunningDaemon
from tests.wire.servers import wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

_CALLER = "b7ad6b7169203331"


def ask(daemon, number, method, path, value=None):
    """Ask as somebody who makes spans, too; return the trace."""
    trace = f"{number:032x}"
    headers = {"traceparent": f"00-{trace}-{_CALLER}-01"}
    answer = daemon.ask(method, path, value, headers=headers)
    assert answer.status < 300, answer.data
    return trace


def test_one_request_is_one_trace(tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with (
        Collector() as collector,
        RunningDaemon(tmp_path, f"tracing.endpoint={collector.url}") as daemon,
    ):
        traces = {
            ask(daemon, 1, "POST", "/v1/jobs", {"id": "a", "spec": TINY}): "POST /v1/jobs",
            ask(daemon, 2, "POST", "/v1/jobs/a/start"): "POST /v1/jobs",
        }
        daemon.wait_frames("a")
        traces[ask(daemon, 3, "GET", "/v1/jobs/a/token")] = "GET /v1/jobs/{id}/token"
        traces[ask(daemon, 4, "POST", "/v1/jobs/a/stop")] = "POST /v1/jobs/{id}/stop"

        def find(trace, part):
            return [one for one in collector.list_spans() if (one.trace, one.part) == (trace, part)]

        def has_come(trace):
            return find(trace, "daemon") and find(trace, "worker")

        for trace, name in traces.items():
            wait_until(functools.partial(has_come, trace), 15)
            (above,) = find(trace, "daemon")
            assert above.parent == _CALLER
            assert (name, above.span) in {(one.name, one.parent) for one in find(trace, "worker")}
        assert all(daemon.key.encode() not in body for _, body in collector.bodies)
