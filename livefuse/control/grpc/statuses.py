"""Problem details (RFC 9457) as statuses of gRPC: one table."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import grpc
import msgspec

from livefuse.control.api.views import Problem
from livefuse.errors import DaemonError, DaemonTimeoutError
from livefuse.redact import redact_text
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.control.http_client import Answer

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


class RefusalError(Exception):
    """A call that ends with another status than OK; never leaves this folder."""

    def __init__(self, code: grpc.StatusCode, text: str, problem: bytes = b"") -> None:
        super().__init__(text)
        self.code = code
        self.text = text[:_MAX_TEXT]
        self.problem = problem


def refuse_by_answer(answer: Answer) -> RefusalError:
    """Return the end of a call that the HTTP API said no to."""
    try:
        problem = msgspec.json.decode(answer.data, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        title = HTTPStatus(answer.status).phrase if answer.status in CODES else "no answer"
        problem = Problem(title=title, status=answer.status, detail=title)
    text = f"{problem.detail}: {problem.hint}" if problem.hint else problem.detail
    short = msgspec.structs.replace(
        problem, detail=problem.detail[:_MAX_TEXT], hint=problem.hint[:_MAX_TEXT]
    )
    return RefusalError(get_code(answer.status), text, msgspec.json.encode(short))


def refuse_by_error(error: DaemonError) -> RefusalError:
    """Return the end of a call that the HTTP API did not answer."""
    late = isinstance(error, DaemonTimeoutError)
    code = grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.UNAVAILABLE
    return RefusalError(code, str(error))


@contextlib.contextmanager
def tell_refusals(context: grpc.ServicerContext, name: str) -> Iterator[None]:
    """End the call `name` with the status of what is raised within; faults of ours are logged."""
    try:
        yield
    except RefusalError as refusal:
        told = refusal
    except DaemonError as error:
        told = refuse_by_error(error)
    except Exception as error:  # noqa: BLE001 - a fault of ours is told in one sentence, and logged
        cause = redact_text(f"{type(error).__name__}: {error}")
        get_logger("grpc").error("call failed", call=name, cause=cause)
        told = RefusalError(grpc.StatusCode.INTERNAL, "a fault in livefuse: please report it")
    else:
        return
    if told.problem:
        context.set_trailing_metadata(((PROBLEM_KEY, told.problem),))
    context.abort(told.code, told.text)
