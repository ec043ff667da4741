"""Only answer to our own names.

A page on the internet can point a name of its own at 127.0.0.1 and so read what is served there
(DNS rebinding). Its requests carry that name in their Host header, so names that are not ours are
refused; a bare address cannot be re-pointed and is let through.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING

from aiohttp import web
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_own_host(header: str, names: frozenset[str]) -> bool:
    """Say whether a Host header names an IP address, this machine, or one of `names`."""
    try:
        host = URL(f"http://{header}").host
    except ValueError:
        return False
    if not host:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".") in names
    return True


def create_host_guard(bound_host: str) -> Middleware:
    """Return the middleware that refuses foreign names."""
    names = frozenset({"localhost", bound_host.lower(), socket.gethostname().lower()})

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_own_host(request.headers.get("Host", ""), names):
            return web.Response(status=403, text="this name is not this server's\n")
        return await handler(request)

    return guard
