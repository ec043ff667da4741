"""Passes a request on to the worker of its job, and what it answers back: bytes, as they come.

A client that takes nothing stops what its worker sends, and the worker's own bounds decide what
becomes of it; one that has gone takes the worker's end of it along.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from livefuse.control.api.body import HELD_BODY
from livefuse.control.api.caller import get_caller
from livefuse.control.api.tracing import get_trace
from livefuse.control.daemon.worker import explain_loss

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from livefuse.control.daemon.worker import WorkerHandle

_BASE: Final = "http://localhost"
# RFC 9110, 7.6.1: these are between two neighbours.
_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
# Judged here, or made anew: the worker knows one caller, us, and who we say it is.
_OURS: Final = frozenset(
    {"host", "authorization", "origin", "cookie", "expect", "accept-encoding", "idempotency-key"}
)
_MADE: Final = frozenset({"content-length", "date", "server", "content-type"})
_WHOLE_BYTES: Final = 1 << 18
_WRITE_TIMEOUT_S: Final = 10.0


async def forward(
    request: web.Request, worker: WorkerHandle, body: bytes | None = None
) -> web.StreamResponse:
    """Return what `worker` answers to `request`; with `body` in place of what comes with it.

    Raises:
        WorkerLostError: it is gone before it has answered.
    """
    async with ask(request, worker, body) as answer:
        return await relay(request, answer)


@contextlib.asynccontextmanager
async def ask(
    request: web.Request, worker: WorkerHandle, body: bytes | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Give what `worker` answers to `request`, its body still to come.

    Raises:
        WorkerLostError: it is gone before it has answered.
    """
    headers = CIMultiDict(pick_headers(request))
    headers.update(worker.sign(get_caller(request)), **get_trace())
    body = request.get(HELD_BODY) if body is None else body
    data = body if body is not None else request.content if request.can_read_body else None
    if body is not None:
        headers.pop("Content-Length", None)
    try:
        with worker.being_asked():
            answer = await worker.session.request(
                request.method, find_url(request), data=data, headers=headers, allow_redirects=False
            )
    except (aiohttp.ClientError, OSError, RuntimeError):
        if request.content.exception() is not None:
            raise web.HTTPBadRequest(text="the body does not come as its headers say") from None
        raise explain_loss() from None
    async with answer:
        yield answer


def find_url(request: web.Request) -> URL:
    """Return the address at the worker: the same, without the key."""
    url = request.rel_url
    if "key" in url.query:
        url = url.without_query_params("key")
    return URL(f"{_BASE}{url.raw_path_qs}", encoded=True)


def pick_headers(request: web.Request) -> dict[str, str]:
    """Return what of the request's headers is for the worker too."""
    named = {name.strip().lower() for name in request.headers.get("Connection", "").split(",")}
    left_out = _HOP | _OURS | named
    return {name: value for name, value in request.headers.items() if name.lower() not in left_out}


async def relay(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Return `answer` as ours.

    Raises:
        WorkerLostError: its worker is gone before anything of it was passed on.
    """
    headers = CIMultiDict(
        (name, value)
        for name, value in answer.headers.items()
        if name.lower() not in _HOP and name.lower() not in _MADE
    )
    if (kind := answer.headers.get("Content-Type")) is not None:
        headers["Content-Type"] = kind
    length = answer.content_length
    if answer.status in (204, 304) or (length is not None and length <= _WHOLE_BYTES):
        return web.Response(status=answer.status, body=await _read(answer), headers=headers)
    response = web.StreamResponse(status=answer.status, headers=headers)
    response.force_close()
    await response.prepare(request)
    try:
        await _pump(answer, response)
    except (ConnectionError, TimeoutError):
        pass  # the client has gone, or takes nothing any more
    except (aiohttp.ClientError, OSError):
        # Its end came in the middle: whoever reads is to see that it is none.
        if request.transport is not None:
            request.transport.abort()
    return response


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    try:
        return await answer.read()
    except (aiohttp.ClientError, OSError):
        raise explain_loss() from None


async def _pump(answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    while chunk := await answer.content.readany():
        async with asyncio.timeout(_WRITE_TIMEOUT_S):
            await response.write(chunk)
    await response.write_eof()
