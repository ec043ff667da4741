"""Problem details (RFC 9457) as statuses of gRPC: one table."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NoReturn

import grpc
import msgspec

from livefuse.control.api.views import Problem
from livefuse.errors import DaemonTimeoutError

if TYPE_CHECKING:
    from livefuse.control.http_client import Answer
    from livefuse.errors import DaemonError

CODES: Final[dict[int, grpc.StatusCode]] = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    405: grpc.StatusCode.UNIMPLEMENTED,
    406: grpc.StatusCode.INVALID_ARGUMENT,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    412: grpc.StatusCode.ABORTED,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    428: grpc.StatusCode.FAILED_PRECONDITION,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    502: grpc.StatusCode.UNAVAILABLE,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
    507: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
PROBLEM_KEY: Final = "problem-bin"
_MAX_TEXT: Final = 1000  # statuses travel as headers, which are small


def get_code(status: int) -> grpc.StatusCode:
    """Return the status of gRPC for one of HTTP."""
    return CODES.get(status, grpc.StatusCode.UNKNOWN)


def abort_by_answer(context: grpc.ServicerContext, answer: Answer) -> NoReturn:
    """End a call with what the HTTP API said against it.

    Raises:
        Exception: always; grpc's own way out of a handler.
    """
    try:
        problem = msgspec.json.decode(answer.data, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        title = HTTPStatus(answer.status).phrase if answer.status in CODES else "no answer"
        problem = Problem(title=title, status=answer.status, detail=title)
    text = f"{problem.detail}: {problem.hint}" if problem.hint else problem.detail
    short = msgspec.structs.replace(
        problem, detail=problem.detail[:_MAX_TEXT], hint=problem.hint[:_MAX_TEXT]
    )
    context.set_trailing_metadata(((PROBLEM_KEY, msgspec.json.encode(short)),))
    context.abort(get_code(answer.status), text[:_MAX_TEXT])
    raise AssertionError  # abort has raised


def abort_by_error(context: grpc.ServicerContext, error: DaemonError) -> NoReturn:
    """End a call that the HTTP API did not answer.

    Raises:
        Exception: always; grpc's own way out of a handler.
    """
    late = isinstance(error, DaemonTimeoutError)
    code = grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.UNAVAILABLE
    context.abort(code, str(error)[:_MAX_TEXT])
    raise AssertionError  # abort has raised
