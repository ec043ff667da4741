"""Connections: how many there may be, and how long one may say nothing.

Whoever connects has not shown a key yet. A connection that does not come to its first request
within ten seconds is closed, and where all places are taken the oldest of those goes first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware
    from aiohttp.web_protocol import RequestHandler

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_CONNECTIONS: Final = 256
PATIENCE_S: Final = 10.0


class Doorway:
    """Accepts connections for an application's server. On the loop."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._server: web.Server | None = None
        self._silent: dict[RequestHandler, asyncio.TimerHandle] = {}
        self._listening: asyncio.Server | None = None

    async def open(self, server: web.Server, listener: socket.socket) -> None:
        """Accept from now on, for `server`."""
        self._server = server
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._accept, sock=listener, backlog=128)

    def close(self) -> None:
        """Accept no more."""
        if self._listening is not None:
            self._listening.close()
        for timer in self._silent.values():
            timer.cancel()
        self._silent.clear()

    def note_request(self, connection: RequestHandler) -> None:
        """Tell that a whole request has come by `connection`."""
        timer = self._silent.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _accept(self) -> asyncio.BaseProtocol:
        if self._server is None:
            return _Refusal()
        if len(self._server.connections) >= MAX_CONNECTIONS:
            if not self._silent:
                return _Refusal()
            self._dismiss(next(iter(self._silent)))
        connection: RequestHandler = self._server()
        loop = asyncio.get_running_loop()
        self._silent[connection] = loop.call_later(self._patience_s, self._dismiss, connection)
        return connection

    def _dismiss(self, connection: RequestHandler) -> None:
        self.note_request(connection)
        if connection.transport is not None:
            connection.transport.abort()


def create_greeter(doorway: Doorway) -> Middleware:
    """Return the middleware that tells `doorway` of requests."""

    @web.middleware
    async def greet(request: web.Request, handler: Handler) -> web.StreamResponse:
        doorway.note_request(request.protocol)
        return await handler(request)

    return greet


class _Refusal(asyncio.Protocol):
    """Hangs up at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
