"""The figures of a job as server-sent events, a few times a second."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from livefuse.control.api.caller import get_caller
from livefuse.control.api.context import get_api
from livefuse.control.api.hiding import hide_statistics
from livefuse.control.api.problems import NO_STORE
from livefuse.errors import JobError

if TYPE_CHECKING:
    from livefuse.job.job import Job

MAX_HZ: Final = 5.0
_DEFAULT_HZ: Final = 2.0
_WRITE_TIMEOUT_S: Final = 10.0


async def stream_events(request: web.Request) -> web.StreamResponse:
    """Send `status` events until the job ends, then `end`; `?hz=` asks for up to 5 a second."""
    api = get_api(request)
    managed = api.get_managed(request)
    if managed.job is None:
        raise JobError(f"the job {managed.job_id} has not been started", hint="start it first")
    limits = api.config.limits
    with api.watchers.hold(get_caller(request), limits.event_streams, limits):
        response = web.StreamResponse(headers={**NO_STORE, "Content-Type": "text/event-stream"})
        response.force_close()
        try:
            await response.prepare(request)
            await _send_until_end(response, managed.job, request)
        except (ConnectionError, TimeoutError):
            pass  # whoever watched has gone
        return response


async def _send_until_end(response: web.StreamResponse, job: Job, request: web.Request) -> None:
    """Watch one life of the job: started again, it has another and other events."""
    figures, caller, period_s = (
        get_api(request).figures,
        get_caller(request),
        _read_period_s(request),
    )
    while True:
        is_over = job.wait(0)
        now = hide_statistics(caller, await figures.collect(job))
        if now is None:
            await write_chunk(response, b": the job does not answer\n\n")
        else:
            await _send(response, "status", msgspec.json.encode(now))
        if is_over:
            await _send(response, "end", b"{}")
            return
        await asyncio.sleep(period_s)


async def _send(response: web.StreamResponse, event: str, data: bytes) -> None:
    await write_chunk(response, f"event: {event}\n".encode() + b"data: " + data + b"\n\n")


async def write_chunk(response: web.StreamResponse, data: bytes) -> None:
    """Write `data`.

    Raises:
        TimeoutError: whoever reads has stopped reading.
    """
    async with asyncio.timeout(_WRITE_TIMEOUT_S):
        await response.write(data)


def _read_period_s(request: web.Request) -> float:
    try:
        hz = float(request.query.get("hz", _DEFAULT_HZ))
    except ValueError:
        hz = _DEFAULT_HZ
    if math.isnan(hz):
        hz = _DEFAULT_HZ
    return 1 / min(max(hz, 0.1), MAX_HZ)
