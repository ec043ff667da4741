"""Back-off, keyframe wishes, and what a refused connection means."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, ManualClock
from livefuse.errors import PublishConnectError, PublishRejectedError, PublishStalledError
from livefuse.publish.backoff import Backoff
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.publish.rtmp_child import UNACKNOWLEDGED, _tune_sockets
from livefuse.publish.rtmp_failure import explain_failure, explain_stall
from livefuse.publish.timeline import Timeline

URL = "rtmp://user:geheim@host.example/app/the-key?token=abc"


@given(st.integers(1, 5000), st.integers(1, 60_000), st.floats(0, 1), st.integers(1, 200))
def test_waits_stay_within_their_bounds_for_ever(low, high, drawn, tries):
    backoff = Backoff(low, high, draw=lambda: drawn)
    waits = [backoff.next_ms() for _ in range(tries)]
    assert all(low / 2 - 1 <= wait <= max(low, high) for wait in waits)
    backoff.reset()
    assert backoff.next_ms() == waits[0]


def test_waits_double():
    backoff = Backoff(500, 30_000, draw=lambda: 1.0)
    assert [backoff.next_ms() for _ in range(8)] == [
        500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
    ]  # fmt: skip


def test_many_wishes_make_one_keyframe_and_half_a_second_lies_between_two():
    clock, forced = ManualClock(), []
    requests = KeyframeRequests(clock, lambda: forced.append(clock.now_ns() // NS_PER_MS))
    for _ in range(5):
        requests.request()
    clock.advance(499 * NS_PER_MS)
    requests.serve()
    assert forced == [0]
    clock.advance(NS_PER_MS)
    requests.serve()  # the wishes that came too early are not forgotten
    requests.serve()
    assert forced == [0, 500]


def test_a_keyframe_that_came_by_itself_serves_the_wish():
    clock, forced = ManualClock(), []
    requests = KeyframeRequests(clock, lambda: forced.append(1))
    requests.request()
    requests.request()
    requests.note_keyframe()
    clock.advance(NS_PER_MS * 1000)
    requests.serve()
    assert forced == [1]


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("Failed to resolve hostname host.example: Name or service not known",
         PublishConnectError, "no such host"),
        ("Connection to tcp://host.example:1935 failed: Connection refused",
         PublishConnectError, "refused"),
        ("Server error: Already publishing the-key",
         PublishRejectedError, "(Already publishing ***)"),
        ("Peer certificate failed verification", PublishConnectError, "certificate"),
        ("Cannot read RTMP handshake response", PublishRejectedError, "does not speak RTMP"),
        ("OSError Input/output error", PublishRejectedError, "closed the connection"),
        ("Connection to tcp://h failed: No route to host", PublishConnectError, "reached"),
    ],
)  # fmt: skip
def test_what_ffmpeg_says_becomes_a_sentence_without_secrets(line, kind, words):
    failure = explain_failure(URL, [line], was_connected=False, lived_ns=0)
    text = str(failure.error)
    assert failure.state == "refused"
    assert isinstance(failure.error, kind)
    assert words in text
    assert failure.error.hint
    assert not any(secret in text for secret in ("geheim", "the-key", "abc"))


def test_a_line_that_repeats_the_options_decides_nothing():
    said = ["Slave '[f=data:tls_verify=1]rtmps://h/a/k': TLS connection", "OSError lost"]
    failure = explain_failure("rtmps://h/a/k", said, was_connected=True, lived_ns=10**10)
    assert "connection was lost" in str(failure.error)
    assert failure.state == "connecting"


def test_hanging_up_at_once_is_a_refusal_and_later_a_loss():
    early = explain_failure(URL, [], was_connected=True, lived_ns=10**8)
    assert isinstance(early.error, PublishRejectedError)
    late = explain_failure(URL, [], was_connected=True, lived_ns=10**11)
    assert isinstance(late.error, PublishConnectError)


def test_a_stall_says_which_kind():
    assert isinstance(explain_stall(URL, 2000, was_connected=True).error, PublishStalledError)
    failure = explain_stall(URL, 5000, was_connected=False)
    assert isinstance(failure.error, PublishConnectError)
    assert "does not answer (for 5 s)" in str(failure.error)


@given(st.lists(st.integers(-100, 100_000), max_size=50), st.sampled_from([1, 90]))
def test_places_on_the_line_strictly_increase(stamps, unit):
    timeline = Timeline(unit)
    placed = [p for stamp in stamps if (p := timeline.place("video", stamp)) is not None]
    assert placed == sorted(set(placed))
    assert len(placed) == sum(stamp >= 0 for stamp in stamps)


def test_a_way_that_acknowledges_nothing_is_a_stall():
    """What the kernel gives up on, after a pulled cable say, comes as the child's own words."""
    said = [f"TimeoutError {UNACKNOWLEDGED}"]
    state, error = explain_failure(URL, said, was_connected=True, lived_ns=10**10)
    assert (state, type(error)) == ("stalled", PublishStalledError)
    assert "acknowledges nothing" in str(error)


def test_sockets_of_a_child_are_bounded_in_bytes_and_time():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sock:
        sock.connect(server.getsockname())
        assert sock.fileno() in _tune_sockets(2000)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 3000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 1 << 18


@pytest.mark.parametrize("kind", ["video", "audio"])
@pytest.mark.parametrize("step", [90_000 / 25, 90_000 * 1001 / 30_000, 1024 * 90_000 / 44_100])
def test_after_half_an_hour_a_stamp_is_where_it_belongs(kind, step):
    """(C51) What a container counts in is coarse; the error does not add up."""
    timeline = Timeline(90)  # whole ms, as FLV and Matroska
    for number in range(round(30 * 60 * 90_000 / step)):
        placed = timeline.place(kind, round(number * step))
        assert placed is not None
        assert abs(placed - number * step / 90) <= 1
