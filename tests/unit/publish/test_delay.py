"""A constant delay: whatever the work took, sound and pictures leave so long after they came."""

from __future__ import annotations

import threading
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, ManualClock, SystemClock
from livefuse.config import PublishConfig
from livefuse.packet import Packet
from livefuse.publish import delay
from livefuse.publish.base import OutputStatus
from livefuse.publish.delay import DelayLine, DelayQueue
from livefuse.publish.fanout import FanOut
from livefuse.publish.keyframes import KeyframeRequests
from tests.streams import make_media

MS = NS_PER_MS


def packet(kind, number, arrival_ms=0):
    return Packet(kind, b"", number, number, arrival_ns=arrival_ms * MS)


def test_work_that_took_longer_waits_shorter():
    queue = DelayQueue(100)
    slow, quick = packet("video", 1, 1000), packet("audio", 2, 1050)
    queue.put(quick, 1051 * MS)
    queue.put(slow, 1080 * MS)
    assert queue.get_wait_ns(1080 * MS) == 20 * MS
    assert queue.take_due(1099 * MS) == []
    assert queue.take_due(1100 * MS) == [slow]
    assert queue.take_due(1150 * MS) == [quick]
    assert queue.get_wait_ns(1150 * MS) is None


def test_what_is_made_here_counts_from_now():
    queue = DelayQueue(100)
    queue.put(packet("audio", 1), 500 * MS)
    assert queue.get_wait_ns(500 * MS) == 100 * MS


def test_what_is_late_leaves_at_once_and_in_its_order():
    queue = DelayQueue(100)
    first, late = packet("video", 1, 1000), packet("video", 2, 400)
    queue.put(first, 1001 * MS)
    queue.put(late, 1002 * MS)
    assert queue.take_due(1100 * MS) == [first, late]


def test_too_much_leaves_early(monkeypatch):
    monkeypatch.setattr(delay, "_MAX_PACKETS", 3)
    queue = DelayQueue(10_000)
    packets = [packet("video", n, n + 1) for n in range(5)]
    for each in packets:
        queue.put(each, 10 * MS)
    assert queue.take_due(10 * MS) == packets[:2]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["video", "audio"]), st.integers(0, 300)), max_size=50))
def test_each_kind_stays_in_order_whatever_comes(moves):
    queue = DelayQueue(50)
    now, out = 1000, []
    for number, (kind, age) in enumerate(moves):
        now += 7
        queue.put(packet(kind, number, now - age), now * MS)
        out += queue.take_due(now * MS)
    out += queue.take_all()
    assert len(out) == len(moves)
    for kind in ("video", "audio"):
        numbers = [each.pts for each in out if each.kind == kind]
        assert numbers == sorted(numbers)


def test_a_job_s_outputs_get_everything_late_by_the_same_time():
    got = []

    class Output:
        def open(self, streams):
            pass

        def send(self, each):
            got.append((time.monotonic_ns() - each.arrival_ns, each))

        def close(self, timeout_s):
            pass

        def status(self):
            return OutputStatus(kind="fake", url="fake:", state="live", connected=True)

    fanout = FanOut(
        lambda _url: Output(),
        {},
        KeyframeRequests(ManualClock(), lambda: None),
        PublishConfig(delay_ms=200),
    )
    fanout.add("fake:")
    fanout.open(make_media().streams)
    arrival_ns = time.monotonic_ns()
    for number in range(10):
        work_s = 0.004 * (number % 3)
        threading.Event().wait(work_s)
        fanout.send(Packet("video", b"", number, number, arrival_ns=arrival_ns + number * 8 * MS))
    assert got == []
    deadline = time.monotonic() + 5
    while len(got) < 10:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    late_ms = [waited / MS for waited, _ in got]
    assert min(late_ms) >= 200
    assert sorted(late_ms)[5] < 240
    fanout.send(packet("video", 99))
    fanout.close(2)
    assert got[-1][1].pts == 99, "nothing is lost at the end"


def test_closing_ends_the_thread():
    line = DelayLine(10_000, SystemClock(), lambda _: None)
    line.put(packet("video", 1))
    line.close()
    assert "livefuse-delay" not in {thread.name for thread in threading.enumerate()}
    line.put(packet("video", 2))
