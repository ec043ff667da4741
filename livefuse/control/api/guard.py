"""Who is let in: our own names, our own pages, and whoever has a key whose role is large enough.

A page on the internet can point a name of its own at 127.0.0.1 and so read what is served there
(DNS rebinding). Its requests carry that name in their Host header, so names that are not ours are
refused; a bare address cannot be re-pointed and is let through. What changes something must not
come from a foreign page either: its Origin, where a browser sends one, has to be this address.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web
from structlog.contextvars import bound_contextvars

from livefuse.addresses import parse_literal
from livefuse.config import HttpConfig
from livefuse.control.api.caller import CALLER, is_large_enough, may
from livefuse.control.api.perimeter import Perimeter, read_host
from livefuse.control.api.problems import create_problem
from livefuse.control.api.routes import find_route
from livefuse.errors import JobNotFoundError
from livefuse.safety.actor import NOBODY, act_as

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from aiohttp.typedefs import Middleware

    from livefuse.control.api.caller import Caller, FindCaller, FindOwner

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN_PATHS: Final = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
OPEN_PREFIX: Final = "/web/"
_BEARER: Final = "bearer "
_WRONG_KEY_S: Final = 0.2
"""Whoever tries keys waits; with the connections bounded, no more than some hundred a second."""
_LOOK_S: Final = 1.0
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def is_own_host(header: str, names: frozenset[str]) -> bool:
    """Say whether a Host header names an IP address, this machine, or one of `names`."""
    host = read_host(header)
    return bool(host) and (host in names or parse_literal(host) is not None)


def read_key(request: web.Request) -> str:
    """Return the key of a request: a bearer token, or `?key=` where no header can be set."""
    header = request.headers.get("Authorization", "")
    if header.lower().startswith(_BEARER):
        return header[len(_BEARER) :].strip()
    return request.query.get("key", "")


def create_guard(
    bound_host: str,
    find_caller: FindCaller,
    find_owner: FindOwner,
    perimeter: Perimeter | None = None,
) -> Middleware:
    """Return the middleware, which tells handlers who calls (`get_caller`).

    `find_caller` returns whose key it is, None when it is nobody's; `find_owner` the key that made
    the job of an id, None when there is no such job. Both are called on the loop. `perimeter` knows
    names, proxies and limits; without it those of `bound_host` and the defaults.
    """
    door = perimeter or Perimeter(HttpConfig(host=bound_host))

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = _check_page(request, door) or door.check_address(request)
        if refusal is not None:
            return refusal
        if _is_open(request):
            with act_as(NOBODY):
                return await handler(request)
        given = read_key(request)
        caller = find_caller(given)
        if caller is None:
            return await _refuse_key(request, given, door)
        request[CALLER] = caller = _locate(caller, request, door)
        refusal = door.check_key(caller) or _check_role(request, caller, find_owner)
        if refusal is not None:
            return refusal
        is_valid = lambda: find_caller(given) is not None  # noqa: E731 - of this request
        with (
            act_as(caller.name),
            bound_contextvars(who=caller.name),
            _watch_key(request, is_valid),
        ):
            return await handler(request)

    return guard


def _locate(caller: Caller, request: web.Request, door: Perimeter) -> Caller:
    """Return the caller with its address; a daemon has said it to its worker already."""
    address = caller.address or door.find_client(request)
    return msgspec.structs.replace(caller, address=address)


def _check_page(request: web.Request, door: Perimeter) -> web.Response | None:
    """Refuse names and pages that are not ours. Nothing says CORS: no other page may look in."""
    host = request.headers.get("Host", "")
    if not is_own_host(host, door.names):
        return create_problem(403, "this name is not this server's", "use its address")
    asks_first = "Access-Control-Request-Method" in request.headers
    is_safe = request.method in _SAFE and not asks_first
    if not is_safe and not door.is_own_origin(request.headers.get("Origin", ""), host):
        return create_problem(403, "this page is not this server's")
    return door.check_transport(request)


def _check_role(request: web.Request, caller: Caller, find_owner: FindOwner) -> web.Response | None:
    route = find_route(request)
    if route is None:
        return None  # the description, or what is not there
    if not is_large_enough(caller, route.role):
        return create_problem(
            403, f"a key of the role {caller.role} may not do this", f"it takes one of {route.role}"
        )
    job_id = request.match_info.get("id", "")
    if not may(caller, route, find_owner(job_id) if job_id else None):
        # In the words of a job that is not there: whose else there are is nobody's business.
        raise JobNotFoundError(f"there is no job {job_id[:64]!r}", hint="GET /v1/jobs")
    return None


@contextlib.contextmanager
def _watch_key(request: web.Request, is_valid: Callable[[], bool]) -> Iterator[None]:
    """End an answer that takes long, a stream, when its key is revoked meanwhile."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal timer
        if is_valid():
            timer = loop.call_later(_LOOK_S, look)
        elif request.transport is not None:
            request.transport.abort()

    timer = loop.call_later(_LOOK_S, look)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


async def _refuse_key(request: web.Request, given: str, door: Perimeter) -> web.Response:
    if given:
        refusal = door.check_wrong_key(request)
        if refusal is not None:
            return refusal
        await asyncio.sleep(_WRONG_KEY_S)
    return create_problem(
        401,
        "the key is missing or wrong",
        "use the address that was printed at the start, or Authorization: Bearer KEY",
        {"WWW-Authenticate": "Bearer"},
    )


def _is_open(request: web.Request) -> bool:
    return request.path in OPEN_PATHS or request.path.startswith(OPEN_PREFIX)
