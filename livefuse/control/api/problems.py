"""Errors as problem details (RFC 9457). No stack trace and no secret leaves."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from livefuse.control.api.views import Problem
from livefuse.errors import LivefuseError, get_http_status
from livefuse.redact import redact_text
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MEDIA_TYPE: Final = "application/problem+json"
ERROR_TYPE: Final = "urn:livefuse:error:"
NO_STORE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def create_problem(
    status: int,
    detail: str,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    *,
    kind: str = "",
) -> web.Response:
    """Return the answer that tells a client what went wrong and what to do.

    `kind` is the name of the error, so that a client in Python can raise the same (remote.py).
    """
    problem = Problem(
        type=f"{ERROR_TYPE}{kind}" if kind else "about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        hint=hint,
    )
    return web.Response(
        status=status,
        body=msgspec.json.encode(problem),
        content_type=MEDIA_TYPE,
        headers={**NO_STORE, **(headers or {})},
    )


@web.middleware
async def explain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever a handler raises into a problem."""
    try:
        return await handler(request)
    except LivefuseError as error:
        status = get_http_status(error)
        extra = {"Retry-After": "2"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        text, hint = redact_text(error.message), redact_text(error.hint)
        return create_problem(status, text, hint, extra, kind=type(error).__name__)
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        kept = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
        text = (error.text or error.reason).strip()
        return create_problem(error.status, text, headers=kept)
    except Exception as error:  # noqa: BLE001 - a fault of ours is told in one sentence, and logged
        text = redact_text(f"{type(error).__name__}: {error}")
        get_logger("api").error("request failed", path=request.path, cause=text)
        return create_problem(500, "a fault in livefuse", "please report it")
