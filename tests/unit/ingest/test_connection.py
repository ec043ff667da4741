"""States of one connection, and readers that hang, in a time of our own."""

from __future__ import annotations

import threading
from fractions import Fraction

import av
import pytest
from av.codec.context import CodecContext

from livefuse.clock import NS_PER_MS, ManualClock, SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import IngestEndedError, IngestTimeoutError
from livefuse.ingest.connection import Connection
from livefuse.ingest.reader import MAX_ABANDONED, Abandoned, Item, Reader, ReaderEnded
from livefuse.ingest.source import Source
from tests.sinks import CollectingSink
from tests.wire.servers import wait_until

CONFIG = IngestConfig(read_timeout_ms=5000)


def make_source(fps=30.0):
    return Source(
        url="rtsp://127.0.0.1/x", decoder=CodecContext.create("h264", "r"),
        time_base=Fraction(1, 1000), audio=None, fps=fps, aspect=None, decoder_name="h264",
        packets=iter(()), close=lambda: None,
    )  # fmt: skip


class Pictures:
    """A stage for which each packet is a picture, but those that are `b"smeared"`."""

    has_media = False
    frames = 0

    def begin_segment(self, source):
        pass

    def take(self, packet, arrival_ns, *, is_video):
        self.frames += bytes(packet) != b"smeared"

    def distrust(self, now_ns):
        pass

    def flush(self):
        pass


class TimedSink(CollectingSink):
    """Notes when a state was told."""

    def __init__(self, clock):
        super().__init__()
        self.told = []
        self._clock = clock

    def on_state(self, state, error=None):
        self.told.append((state, self._clock.now_ns() // NS_PER_MS))


class FakeReader:
    """Gives packets at their times (ms); waiting lets the clock run."""

    def __init__(self, clock, items, fps):
        self._clock, self._items, self._fps = clock, list(items), fps

    def wait_opened(self, timeout_s):
        return make_source(self._fps)

    def get(self, timeout_s):
        now = self._clock.now_ns()
        if not self._items:
            raise ReaderEnded(None)
        at_ns = self._items[0][0] * NS_PER_MS
        if at_ns > now + timeout_s * 1e9:
            self._clock.advance(int(timeout_s * 1e9))
            return None
        self._clock.advance(max(at_ns - now, 0))
        return Item(av.Packet(self._items.pop(0)[1]), True, self._clock.now_ns())


def run(times, fps=30.0, smeared=range(0)):
    clock = ManualClock()
    sink = TimedSink(clock)
    items = [(at, b"smeared" if at in smeared else b"whole") for at in times]
    link = Connection("rtsp://127.0.0.1/x", CONFIG, clock, threading.Event(), sink, Pictures())
    with pytest.raises((IngestEndedError, IngestTimeoutError)) as caught:
        link.run(FakeReader(clock, items, fps))
    return sink.told, caught.value, clock.now_ns() // NS_PER_MS


def test_silence_is_told_within_a_second_and_so_is_its_end():
    told, error, _ = run([*range(0, 1000, 33), *range(4000, 5000, 33)])
    (stalled, at), (live, back) = told
    assert (stalled, live) == ("stalled", "live")
    assert 990 + 800 <= at <= 990 + 1000
    assert back == 4000
    assert isinstance(error, IngestEndedError)


def test_pictures_that_may_not_be_seen_are_a_stall_too():
    told, _, _ = run(range(0, 6000, 33), smeared=range(2000, 4000))
    assert [state for state, _ in told] == ["stalled", "live"]


def test_a_slow_source_is_not_called_stalled():
    told, _, _ = run(range(0, 10_000, 1000), fps=1.0)
    assert told == []


def test_long_silence_ends_the_connection():
    told, error, ended = run([*range(0, 1000, 33), 60_000])
    assert [state for state, _ in told] == ["stalled"]
    assert isinstance(error, IngestTimeoutError)
    assert 5900 < ended < 6200


def test_readers_that_hang_are_counted_and_bounded():
    going, abandoned, sink = threading.Event(), Abandoned(), CollectingSink()

    def hang():
        going.wait(20)
        raise OSError

    for number in range(MAX_ABANDONED):
        assert not abandoned.is_full, number
        abandoned.close(Reader(hang, SystemClock()), sink)
    assert abandoned.is_full
    assert sink.counts["abandoned_readers"] == MAX_ABANDONED
    going.set()
    wait_until(lambda: not abandoned.is_full, 5, "end of the readers")
