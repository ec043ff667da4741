"""The address where players and people look in: streams, status, metrics.

    GET /                      a page that names the streams
    GET /jobs/ID/live.flv      the stream for OBS, ffplay, VLC: HTTP-FLV
    GET /jobs/ID/live.ts       the same as MPEG-TS
    GET /jobs/ID/status        the figures as JSON
    GET /metrics  /healthz  /readyz

A player is fed from its own bounded queue, so a slow one skips to now and harms nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from aiohttp import web

from livefuse.control.http_guard import create_host_guard
from livefuse.control.http_page import draw_page
from livefuse.errors import ConfigError
from livefuse.metrics import create_metrics, render_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from livefuse.config import HttpConfig
    from livefuse.telemetry import Statistics, Telemetry

MEDIA_TYPES: Final = {"flv": "video/x-flv", "ts": "video/mp2t"}
_PORTS_TRIED: Final = 20
_SEND_BUFFER_BYTES: Final = 256 * 1024  # the kernel's own would hold seconds of a small stream
_PIECE_BYTES: Final = 64 * 1024
_WRITE_TIMEOUT_S: Final = 10.0  # for a piece: a slow player keeps on, a dead one goes
_NO_STORE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Viewer(Protocol):
    """One player's queue."""

    def read(self) -> bytes | None:
        """Return bytes to send, b"" when nothing waits, None at the end of the stream."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


class LiveStream(Protocol):
    """A stream that players can join at any time."""

    def subscribe(self, wake: Callable[[], None]) -> Viewer:
        """Join; `wake` is called from another thread when there is something to read."""
        ...


class Job(Protocol):
    """What is looked at of a job."""

    @property
    def live(self) -> Mapping[str, LiveStream]:
        """The streams by kind: `flv`, `ts`."""
        ...

    @property
    def telemetry(self) -> Telemetry:
        """The measuring points."""
        ...

    def statistics(self) -> Statistics:
        """Return the figures of now."""
        ...


class HttpServer:
    """Serves the jobs of one worker on the running loop."""

    def __init__(self, config: HttpConfig, jobs: Mapping[str, Any]) -> None:
        self._config = config
        self._jobs: Mapping[str, Job] = jobs
        self._viewers = 0
        self._metrics = create_metrics(
            lambda: [(job.statistics(), job.telemetry) for job in list(jobs.values())]
        )
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """The address as this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._config.host, self._config.host)  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        listener = bind_listener(self._config.host, self._config.port)
        self.port = listener.getsockname()[1]
        app = web.Application(middlewares=[create_host_guard(self._config.host)])
        app.add_routes(
            [
                web.get("/", self._show_page),
                web.get("/jobs/{id}/live.{kind:flv|ts}", self._stream),
                web.get("/jobs/{id}/status", self._show_status),
                web.get("/metrics", self._show_metrics),
                web.get("/healthz", self._show_health),
                web.get("/readyz", self._show_readiness),
            ]
        )
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0
        )
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def close(self) -> None:
        """Send players away and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # Streams.

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        kind = request.match_info["kind"]
        stream = self._get_job(request).live.get(kind)
        if stream is None:
            raise _refuse(web.HTTPNotFound, "this job serves no such stream")
        if self._viewers >= self._config.max_viewers:
            raise _refuse(
                web.HTTPServiceUnavailable,
                f"{self._viewers} players are watching and no more are let in: "
                "raise http.max_viewers",
            )
        self._viewers += 1
        try:
            return await self._feed(request, stream, MEDIA_TYPES[kind])
        finally:
            self._viewers -= 1

    async def _feed(
        self, request: web.Request, stream: LiveStream, media_type: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_NO_STORE, "Content-Type": media_type})
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

    # Words and figures.

    async def _show_page(self, _request: web.Request) -> web.Response:
        stats = [job.statistics() for job in list(self._jobs.values())]
        return web.Response(
            text=draw_page(stats, self.base_url),
            content_type="text/html",
            headers={**_NO_STORE, "Content-Security-Policy": "default-src 'none'"},
        )

    async def _show_status(self, request: web.Request) -> web.Response:
        body = msgspec.json.encode(self._get_job(request).statistics())
        return web.Response(body=body, content_type="application/json", headers=_NO_STORE)

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        body, content_type = render_metrics(self._metrics)
        return web.Response(body=body, headers={**_NO_STORE, "Content-Type": content_type})

    async def _show_health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n", headers=_NO_STORE)

    async def _show_readiness(self, _request: web.Request) -> web.Response:
        stats = [job.statistics() for job in list(self._jobs.values())]
        ready = any(s.state == "live" and s.frames_out for s in stats)
        text = "ready\n" if ready else "no job is live yet\n"
        return web.Response(text=text, status=200 if ready else 503, headers=_NO_STORE)

    def _get_job(self, request: web.Request) -> Job:
        job = self._jobs.get(request.match_info["id"])
        if job is None:
            raise _refuse(web.HTTPNotFound, "there is no such job: / names those that run")
        return job


def bind_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket at `port`, or at the next free one after it.

    Raises:
        ConfigError: the address is not this machine's, or the port is not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = range(port, min(port + _PORTS_TRIED, 65536)) if port else range(1)
    for candidate in ports:
        try:
            return socket.create_server((host, candidate), family=family)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            # asyncio's words for people who read code stand in brackets behind the system's.
            reason = (error.strerror or "not possible").partition(" (while")[0]
            raise ConfigError(
                f"cannot listen on {host}:{candidate} ({reason})",
                hint="set http.host and http.port to an address of this machine",
            ) from None
    raise ConfigError(
        f"ports {ports.start} to {ports.stop - 1} of {host} are all taken",
        hint="set http.port to a free one, or 0 for any",
    )


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


def _refuse(kind: type[web.HTTPException], text: str) -> web.HTTPException:
    return kind(text=f"{text}\n", headers=_NO_STORE)
