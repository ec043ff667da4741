"""Statuses of HTTP as statuses of gRPC, and the words that come with them."""

from typing import Any

import pytest

from livefuse.control.http_client import Answer
from livefuse.errors import HTTP_STATUSES, DaemonError, DaemonTimeoutError
from tests.rpc import grpc


def tell(raised):
    """What a context is told when `raised` is raised in a call."""
    from livefuse.control.grpc.statuses import tell_refusals

    told: dict[str, Any] = {}

    class Context:
        def set_trailing_metadata(self, pairs):
            told["trailing"] = dict(pairs)

        def abort(self, code, text):
            told.update(code=code, text=text)

    def fail():
        raise raised

    with tell_refusals(Context(), "GetJob"):
        fail()
    return told


def test_every_status_of_an_error_has_its_own():
    from livefuse.control.grpc.statuses import CODES, get_code

    assert set(HTTP_STATUSES.values()) | {400, 401, 408, 413, 415, 429} <= set(CODES)
    assert get_code(418) is grpc.StatusCode.UNKNOWN
    assert grpc.StatusCode.OK not in CODES.values()


def test_an_answer_that_is_no_problem_is_told_by_its_status():
    from livefuse.control.grpc.statuses import refuse_by_answer

    told = tell(refuse_by_answer(Answer(502, {}, b"<html>")))
    assert told["code"] is grpc.StatusCode.UNAVAILABLE
    assert told["text"] == "Bad Gateway"


def test_long_words_are_cut_for_they_travel_as_headers():
    from livefuse.control.grpc.statuses import refuse_by_answer

    long = b'{"title":"x","status":422,"detail":"%s"}' % (b"y" * 50_000)
    told = tell(refuse_by_answer(Answer(422, {}, long)))
    assert len(told["text"]) == 1000
    assert len(told["trailing"]["problem-bin"]) < 1200


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DaemonTimeoutError("late"), grpc.StatusCode.DEADLINE_EXCEEDED),
        (DaemonError("gone"), grpc.StatusCode.UNAVAILABLE),
    ],
)
def test_no_answer_at_all(error, code):
    assert tell(error)["code"] is code


def test_a_fault_of_ours_tells_nothing_of_the_inside():
    told = tell(KeyError("rtmp://127.0.0.1/live/hunter2hunter2"))
    assert told["code"] is grpc.StatusCode.INTERNAL
    assert "hunter2" not in told["text"]
    assert "KeyError" not in told["text"]
