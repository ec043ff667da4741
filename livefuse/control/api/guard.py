"""Who is let in: our own names, our own pages, and whoever has the key.

A page on the internet can point a name of its own at 127.0.0.1 and so read what is served there
(DNS rebinding). Its requests carry that name in their Host header, so names that are not ours are
refused; a bare address cannot be re-pointed and is let through. What changes something must not
come from a foreign page either: its Origin, where a browser sends one, has to be this address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final

from aiohttp import web
from yarl import URL

from livefuse.control.api.key import is_same_key
from livefuse.control.api.problems import create_problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN_PATHS: Final = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
OPEN_PREFIX: Final = "/web/"
_BEARER: Final = "bearer "
_WRONG_KEY_S: Final = 0.2
"""Whoever tries keys waits; with the connections bounded, no more than some hundred a second."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


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


def is_own_origin(origin: str, host: str) -> bool:
    """Say whether an Origin header (empty: no browser) is the address that was asked."""
    return not origin or origin.partition("://")[2].lower() == host.lower()


def read_key(request: web.Request) -> str:
    """Return the key of a request: a bearer token, or `?key=` where no header can be set."""
    header = request.headers.get("Authorization", "")
    if header.lower().startswith(_BEARER):
        return header[len(_BEARER) :].strip()
    return request.query.get("key", "")


def create_guard(bound_host: str, key: str) -> Middleware:
    """Return the middleware; with an empty `key` none is asked for."""
    names = frozenset({"localhost", bound_host.lower(), socket.gethostname().lower()})

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if not is_own_host(host, names):
            return create_problem(403, "this name is not this server's", "use its address")
        if request.method not in _SAFE and not is_own_origin(
            request.headers.get("Origin", ""), host
        ):
            return create_problem(403, "this page is not this server's")
        if key and not _is_open(request) and not is_same_key(given := read_key(request), key):
            if given:
                await asyncio.sleep(_WRONG_KEY_S)
            return create_problem(
                401,
                "the key is missing or wrong",
                "use the address that was printed at the start, or Authorization: Bearer KEY",
                {"WWW-Authenticate": "Bearer"},
            )
        return await handler(request)

    return guard


def _is_open(request: web.Request) -> bool:
    return request.path in OPEN_PATHS or request.path.startswith(OPEN_PREFIX)
