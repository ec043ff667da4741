"""The events of a job: its worker's, one worker after the other, until the job is over."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import aiohttp
import msgspec
from aiohttp import web

from livefuse.control.api.caller import get_caller
from livefuse.control.api.events import write_chunk
from livefuse.control.api.hiding import hide_statistics
from livefuse.control.api.problems import NO_STORE
from livefuse.control.daemon.context import get_daemon
from livefuse.control.daemon.forward import ask, relay
from livefuse.control.daemon.worker import WorkerLostError, explain_loss
from livefuse.errors import JobError

if TYPE_CHECKING:
    from livefuse.control.daemon.lives import Life
    from livefuse.control.daemon.worker import WorkerHandle

_WAIT_S: Final = 0.3
_KNOWN_S: Final = 3.0
_LOOK_S: Final = 0.05
_OK: Final = 200
_END: Final = b"event: end\ndata: {}\n\n"
_WAITING: Final = b": the job waits for a worker\n\n"


async def stream_events(request: web.Request) -> web.StreamResponse:
    """Send `status` events until the job ends, then `end`; `?hz=` asks for up to 5 a second."""
    daemon = get_daemon(request)
    life = daemon.supervisor.get_life(request.match_info["id"])
    if life.is_over.is_set() and daemon.find_last_figures(life) is None:
        raise JobError(f"the job {life.job_id} has not been started", hint="start it first")
    response = web.StreamResponse(headers={**NO_STORE, "Content-Type": "text/event-stream"})
    response.force_close()
    try:
        return await _follow(request, response, life)
    except (ConnectionError, TimeoutError):
        return response  # whoever watched has gone


async def _follow(
    request: web.Request, response: web.StreamResponse, life: Life
) -> web.StreamResponse:
    """Watch one life of the job, whose workers may come and go."""
    while not life.is_over.is_set():
        worker = life.worker
        answered = None if worker is None else await _pass_on(request, response, life, worker)
        if answered is not None:
            return answered
        await _wait(request, response)
    await response.prepare(request)
    figures = get_daemon(request).find_last_figures(life)
    figures = hide_statistics(get_caller(request), figures)
    if figures is not None:
        await write_chunk(
            response, b"event: status\ndata: " + msgspec.json.encode(figures) + b"\n\n"
        )
    await write_chunk(response, _END)
    return response


async def _pass_on(
    request: web.Request, response: web.StreamResponse, life: Life, worker: WorkerHandle
) -> web.StreamResponse | None:
    """Return the answer that is whole, None when the job goes on elsewhere."""
    try:
        async with ask(request, worker) as answer:
            if answer.status != _OK:
                if _goes_on(life, worker):
                    return None
                return response if response.prepared else await relay(request, answer)
            await response.prepare(request)
            while chunk := await _read(answer):
                if chunk.endswith(_END) and await _is_left(life, worker):
                    # It goes on elsewhere; or its end is told by who watches it, with its figures.
                    await write_chunk(response, chunk.removesuffix(_END) or _WAITING)
                    return None
                await write_chunk(response, chunk)
    except WorkerLostError:
        return None
    return response


def _goes_on(life: Life, worker: WorkerHandle) -> bool:
    """Say whether what a worker says of a job's end is not, or not yet, its end."""
    return life.asked == "renew" or life.worker is not worker


async def _is_left(life: Life, worker: WorkerHandle) -> bool:
    """Say whether the job has left its worker, once the daemon knows what its end there means."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KNOWN_S):
            while not _goes_on(life, worker):  # noqa: ASYNC110 - nobody tells, and it is soon
                await asyncio.sleep(_LOOK_S)
    return _goes_on(life, worker)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await answer.content.readany()
    except (aiohttp.ClientError, OSError):
        raise explain_loss() from None


async def _wait(request: web.Request, response: web.StreamResponse) -> None:
    """Wait a moment, with a sign of life."""
    await response.prepare(request)
    await write_chunk(response, _WAITING)
    await asyncio.sleep(_WAIT_S)
