"""Connections: how many there may be, and how long one may say nothing.

Whoever connects has not shown a key yet. A connection that does not come to its first request
within ten seconds is closed, and where all places are taken the oldest of those goes first. One
address has not all places, unless many are behind it (perimeter.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from livefuse.control.api.perimeter import Perimeter
from livefuse.control.api.problems import create_problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware
    from aiohttp.web_protocol import RequestHandler

    from livefuse.control.api.binding import Certificate

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PATIENCE_S: Final = 10.0
SERVER_OPTIONS: Final[dict[str, Any]] = {
    "access_log": None,
    # A body that nobody wants is read on so long, for its sender to hear why.
    "lingering_time": 2.0,
    "handler_cancellation": True,
    "shutdown_timeout": 1.0,
    # Between two requests, and until the head of the second is whole.
    "keepalive_timeout": 20.0,
    "max_line_size": 8190,
    "max_field_size": 8190,
}
"""What both servers, the daemon's and a worker's, give aiohttp."""


class Doorway:
    """Accepts connections for an application's server. On the loop."""

    def __init__(self, perimeter: Perimeter | None = None, patience_s: float = PATIENCE_S) -> None:
        self.perimeter = perimeter or Perimeter()
        self._patience_s = patience_s
        self._links: dict[RequestHandler, str] = {}
        """The connections that are counted by address, and from where each last asked."""
        self._certificate: Certificate | None = None
        self._server: web.Server | None = None
        self._silent: dict[RequestHandler, asyncio.TimerHandle] = {}
        self._listening: asyncio.Server | None = None

    async def open(
        self,
        server: web.Server,
        listener: socket.socket,
        certificate: Certificate | None = None,
    ) -> None:
        """Accept from now on, for `server`; by TLS with a `certificate`."""
        self._server, self._certificate = server, certificate
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            self._accept,
            sock=listener,
            backlog=128,
            ssl=certificate.context if certificate is not None else None,
        )

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

    def has_room(self, request: web.Request) -> bool:
        """Say whether the address that `request` comes from may have its connection too."""
        most = self.perimeter.limits.connections_per_address
        address = self.perimeter.find_address(request)
        if not most or self.perimeter.is_shared_address(address):
            return True
        self._links = {link: who for link, who in self._links.items() if link.transport is not None}
        self._links[request.protocol] = address
        return sum(who == address for who in self._links.values()) <= most

    def _accept(self) -> asyncio.BaseProtocol:
        if self._server is None:
            return _Refusal()
        if self._certificate is not None:
            self._certificate.refresh()
        if len(self._server.connections) >= self.perimeter.limits.connections:
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
        if not doorway.has_room(request):
            refusal = create_problem(
                429, "too many connections", "close some first", {"Retry-After": "5"}
            )
            refusal.force_close()
            return refusal
        return await handler(request)

    return greet


class _Refusal(asyncio.Protocol):
    """Hangs up at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
