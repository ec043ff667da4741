"""Requests that may come again (Idempotency-Key): done once, answered alike each time.

For POST requests in JSON. What was begun by a daemon that was killed, or for a client that hung up,
is begun again as what may have happened; where a job was to be made its id comes from the key:
there are never two.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import wraps
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web

from livefuse.control.api.body import HELD_BODY, JSON_TYPES, MAX_PICTURED_BYTES, read_bytes
from livefuse.control.api.caller import get_caller
from livefuse.control.api.problems import MEDIA_TYPE, NO_STORE, create_problem
from livefuse.control.background import call_in_thread
from livefuse.control.daemon.context import get_daemon
from livefuse.control.daemon.records import Answer
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADER: Final = "Idempotency-Key"


class Again(NamedTuple):
    """What a request with a key says: `job_id` is for the job that it makes, if it makes one.

    `is_repeated`: it has come before, and what became of it is not known.
    """

    job_id: str
    is_repeated: bool


AGAIN: Final = web.RequestKey("again", Again)
_MAX_KEY: Final = 255
_SERVER_FAULT: Final = 500
_ID_BYTES: Final = 8
_FAILED: Final = 400


def once(handler: Handler) -> Handler:
    """Return `handler` for requests that may come again."""

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        name = request.headers.get(HEADER, "")
        if not name:
            return await handler(request)
        if len(name) > _MAX_KEY or not name.isprintable():
            raise ConfigError("this is no Idempotency-Key", hint=f"{_MAX_KEY} letters at most")
        daemon = get_daemon(request)
        caller = get_caller(request).key_id
        if (caller, name) in daemon.under_way:
            return create_problem(
                409, "a request with this key is under way", "wait for it", {"Retry-After": "2"}
            )
        daemon.under_way.add((caller, name))
        try:
            return await _handle(request, handler, caller, name)
        finally:
            daemon.under_way.discard((caller, name))

    return handle


async def _handle(
    request: web.Request, handler: Handler, caller: str, name: str
) -> web.StreamResponse:
    answers = get_daemon(request).answers
    body = request[HELD_BODY] = await read_bytes(request, JSON_TYPES, MAX_PICTURED_BYTES)
    digest = _digest(request, body)
    known = await call_in_thread("answers", lambda: answers.claim(caller, name, digest))
    if known is not None and known.status:
        return _repeat(known)
    named = hashlib.blake2b(f"{caller}\n{name}".encode(), digest_size=_ID_BYTES)
    request[AGAIN] = Again(named.hexdigest(), known is not None)
    kept: Answer | None = Answer()
    try:
        response = await handler(request)
        if isinstance(response, web.Response) and response.status < _SERVER_FAULT:
            body = response.body if isinstance(response.body, bytes) else b""
            where = response.headers.get("Location", "")
            kept = Answer(status=response.status, body=body, location=where)
    except asyncio.CancelledError:
        kept = None  # who asked has hung up; what was asked for goes on, and is not to begin twice
        raise
    finally:
        # An answer that was not given, or a fault of ours, may be asked for anew.
        if kept is not None:
            await call_in_thread("answers", lambda: answers.keep(caller, name, kept))
    return response


def _digest(request: web.Request, body: bytes) -> bytes:
    what = f"{request.method} {request.path_qs}\n".encode()
    return hashlib.blake2b(what + body, digest_size=32).digest()


def _repeat(answer: Answer) -> web.Response:
    kind = MEDIA_TYPE if answer.status >= _FAILED else "application/json"
    where = {"Location": answer.location} if answer.location else {}
    return web.Response(
        status=answer.status, body=answer.body, content_type=kind, headers={**NO_STORE, **where}
    )
