"""Reading what a request brings, and answering."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.views import MAX_INLINE_CHARACTERS
from livefuse.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
JSON_TYPES: Final = frozenset({"application/json", "application/merge-patch+json"})
HELD_BODY: Final = web.RequestKey("held_body", bytes)
"""On a request whose body somebody has read before its handler."""
_MAX_JSON_BYTES: Final = 64 * 1024
MAX_PICTURED_BYTES: Final = _MAX_JSON_BYTES + MAX_INLINE_CHARACTERS
"""Of JSON that a picture may stand in."""
_BODY_S: Final = 10.0
_SLOWEST_BYTES_PER_S: Final = 500_000


async def read_json(request: web.Request, kind: type[T], limit_bytes: int = _MAX_JSON_BYTES) -> T:
    """Return the body as a checked value of `kind`; an empty body is an empty object.

    Raises:
        ConfigError: it is not JSON, or not of this kind; the sentence says where.
        HTTPUnsupportedMediaType, HTTPRequestEntityTooLarge: as they say.
    """
    data = await read_bytes(request, JSON_TYPES, limit_bytes) or b"{}"
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the body cannot be used ({error})", hint="/v1/openapi.json tells what fits"
        ) from None
    except RecursionError:
        raise ConfigError("the body is nested too deeply", hint="send less") from None


async def read_bytes(request: web.Request, types: frozenset[str], limit_bytes: int) -> bytes:
    """Return the body, at most `limit_bytes`, of one of the media types `types`.

    Raises:
        HTTPUnsupportedMediaType, HTTPRequestEntityTooLarge: as they say.
    """
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        # Pictures and video are packed already, JSON is small: only bombs gain by it.
        raise web.HTTPUnsupportedMediaType(text=f"send it as it is, not as {coding[:32]}")
    if request.can_read_body and request.content_type not in types:
        raise web.HTTPUnsupportedMediaType(text=f"send one of {', '.join(sorted(types))}")
    if (request.content_length or 0) > limit_bytes:
        raise web.HTTPRequestEntityTooLarge(limit_bytes, request.content_length or 0)
    patience_s = _BODY_S + limit_bytes / _SLOWEST_BYTES_PER_S
    try:
        async with asyncio.timeout(patience_s):
            return await _collect(request, limit_bytes)
    except TimeoutError:
        raise web.HTTPRequestTimeout(text=f"the body took more than {patience_s:.0f} s") from None
    except (ClientPayloadError, HttpProcessingError, web.RequestPayloadError):
        raise web.HTTPBadRequest(text="the body does not come as its headers say") from None


async def _collect(request: web.Request, limit_bytes: int) -> bytes:
    if HELD_BODY in request:
        return request[HELD_BODY]
    data = bytearray()
    async for chunk in request.content.iter_chunked(64 * 1024):
        data += chunk
        if len(data) > limit_bytes:
            raise web.HTTPRequestEntityTooLarge(limit_bytes, len(data))
    return bytes(data)


def read_text(data: bytes) -> str:
    """Return `data` as text.

    Raises:
        RefusedError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("the body is no text", hint="send UTF-8") from None


def answer(
    value: Any,  # noqa: ANN401 - whatever msgspec can encode
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Return `value` as JSON."""
    return web.Response(
        status=status,
        body=msgspec.json.encode(value),
        content_type="application/json",
        headers={**NO_STORE, **(headers or {})},
    )
