"""The picture for players: live.flv, live.ts, and a single one, snapshot.jpg.

A player is fed from its own bounded queue, so a slow one skips to now and harms nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Final

from aiohttp import web

from livefuse.control.api.caller import get_caller
from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE
from livefuse.errors import JobError, JobNotFoundError

if TYPE_CHECKING:
    from livefuse.publish.flv import LiveStream

MEDIA_TYPES: Final = {"flv": "video/x-flv", "ts": "video/mp2t"}
_SEND_BUFFER_BYTES: Final = 256 * 1024  # the kernel's own would hold seconds of a small stream
_PIECE_BYTES: Final = 64 * 1024
_WRITE_TIMEOUT_S: Final = 10.0  # for a piece: a slow player keeps on, a dead one goes
_SNAPSHOT_S: Final = 2.0


async def stream_live(request: web.Request) -> web.StreamResponse:
    """Feed a player until the stream ends or it goes."""
    api = get_api(request)
    kind = request.match_info["kind"]
    stream = api.get_job(request).live.get(kind)
    if stream is None:
        raise JobNotFoundError("this job serves no such stream", hint="it goes to files only")
    places = api.config.http.max_viewers
    with api.players.hold(get_caller(request), places, api.config.limits):
        return await _feed(request, stream, MEDIA_TYPES[kind])


async def show_snapshot(request: web.Request) -> web.Response:
    """Return the picture that is shown now, as JPEG."""
    api = get_api(request)
    job = api.get_job(request)
    data = await api.run("snapshot", lambda: job.take_snapshot(_SNAPSHOT_S))
    if data is None:
        raise JobError("no picture has been shown yet", hint="try again when the job is live")
    return web.Response(body=data, content_type="image/jpeg", headers=NO_STORE)


async def _feed(request: web.Request, stream: LiveStream, media_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={**NO_STORE, "Content-Type": media_type})
    response.force_close()
    _limit_send_buffer(request)
    await response.prepare(request)
    wake = asyncio.Event()
    loop = asyncio.get_running_loop()
    viewer = stream.subscribe(lambda: _call_soon(loop, wake))
    try:
        while (data := viewer.read()) is not None:
            for start in range(0, len(data), _PIECE_BYTES):
                async with asyncio.timeout(_WRITE_TIMEOUT_S):
                    await response.write(data[start : start + _PIECE_BYTES])
            if not data:
                await wake.wait()
                wake.clear()
    except (ConnectionError, TimeoutError):
        pass  # the player has gone, or takes nothing any more
    finally:
        viewer.close()
    return response


def _call_soon(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """Wake the loop from the encode thread; a loop that is closed has no viewers left."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(event.set)


def _limit_send_buffer(request: web.Request) -> None:
    """Keep what waits in the kernel small, so that a slow player skips instead of lagging."""
    transport = request.transport
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
