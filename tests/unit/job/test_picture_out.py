"""The output outlives its input: the last picture goes on, stamps never go back."""

import itertools
import threading
from typing import Any

import numpy as np
import pytest

from livefuse.clock import NS_PER_MS, NS_PER_S, SystemClock
from livefuse.config import Config, HoldConfig
from livefuse.frame import Frame, FramePool
from livefuse.job.picture_out import PictureHold, PictureOut
from livefuse.packet import Packet
from livefuse.ring import Ring
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks
from livefuse.telemetry import Telemetry
from livefuse.virtual import Costs, TableCosts, VirtualClock

FRAME_MS = 1000 / 30
MARKS = JobMarks("job", REPLAY_KEYS)
SIZE = (64, 48)


def create_hold(**changes):
    return PictureHold(HoldConfig(**changes), FRAME_MS)


def acquire(pool, pts, luma=100):
    frame = pool.acquire()
    frame.y.fill(luma)
    frame.u.fill(128)
    frame.v.fill(128)
    frame.pts = pts
    return frame


def test_nothing_is_repeated_before_there_was_a_picture():
    hold = create_hold()
    assert hold.get_wait_ns(0) is None
    assert hold.repeat(NS_PER_S) is None


def test_it_waits_a_second_and_then_repeats_five_times_a_second():
    hold, pool = create_hold(), FramePool(*SIZE, 2)
    hold.keep(acquire(pool, 9000), 0)
    assert hold.get_wait_ns(0) == NS_PER_S
    assert hold.get_wait_ns(400 * NS_PER_MS) == 600 * NS_PER_MS
    frame = hold.repeat(NS_PER_S)
    assert frame.pts == 9000 + 90_000
    assert hold.get_wait_ns(NS_PER_S) == 200 * NS_PER_MS
    assert hold.repeat(NS_PER_S + 200 * NS_PER_MS).pts == 9000 + 108_000


def test_a_new_picture_ends_it_and_frees_the_old_one():
    hold, pool = create_hold(), FramePool(*SIZE, 2)
    one, other = acquire(pool, 0), acquire(pool, 3000)
    assert hold.keep(one, 0) is None
    hold.repeat(NS_PER_S)
    assert hold.is_holding
    assert hold.keep(other, 2 * NS_PER_S) is one
    assert not hold.is_holding


@pytest.mark.parametrize("show", ["hold", "blur", "slate"])
def test_what_is_shown_is_as_configured(show):
    hold, pool = create_hold(show=show), FramePool(*SIZE, 2)
    frame = acquire(pool, 0)
    frame.y[:, :32] = 200
    before = frame.y.copy()
    hold.keep(frame, 0)
    shown = hold.repeat(NS_PER_S)
    assert np.array_equal(shown.y, before) == (show == "hold")
    assert (np.ptp(shown.y) == 0) == (show == "slate")
    assert shown.y.mean() > 40  # never black


class FakeEncoder:
    def __init__(self):
        self.stamps = []
        self.contrasts = []

    def encode(self, frame):
        self.stamps.append(frame.pts)
        self.contrasts.append(int(np.ptp(np.diff(frame.y.astype(int)))))
        return []

    def flush(self):
        return []


class FakeFanOut:
    def show(self, frame):
        pass

    def send(self, packet):
        pass


class Run:
    """A PictureOut in a thread of its own, fed by the test."""

    def __init__(self, *, may_hold=True, may_show=None):
        clock = SystemClock()
        config = Config(hold=HoldConfig(after_ms=100, fps=50.0))
        self.encoder = FakeEncoder()
        self.telemetry = Telemetry(clock)
        parts: Any = (self.encoder, FakeFanOut(), self.telemetry, config, MARKS, FRAME_MS)
        self.out = PictureOut(*parts)
        self.ring: Ring[Frame] = Ring(2, mode="every_frame")
        self.pool = FramePool(*SIZE, 6)
        self.thread = threading.Thread(
            target=self.out.run,
            args=(self.ring, self.pool),
            kwargs={"may_hold": may_hold, "may_show": may_show},
            daemon=True,
        )
        self.thread.start()

    def put(self, pts):
        self.ring.put(acquire(self.pool, pts))

    def wait_for(self, is_true):
        event = threading.Event()
        for _ in range(1000):
            if is_true():
                return
            event.wait(0.01)
        raise AssertionError("nothing happened")

    def end(self):
        self.ring.close()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.encoder.stamps


def test_while_nothing_comes_the_output_goes_on_in_real_time():
    """C35: a source that stalls keeps the peer; the stamps are those of the time that passes."""
    run = Run()
    run.put(0)
    run.wait_for(lambda: len(run.encoder.stamps) >= 6)
    assert run.out.is_holding
    stamps = run.end()
    assert stamps == sorted(set(stamps))
    assert stamps[1] >= 9000  # not before 100 ms
    assert run.telemetry.counts()["held_frames"] == len(stamps) - 1


def test_a_consent_that_ends_while_nothing_comes_hides_the_last_picture():
    """R54, C78: a held picture shows somebody just as a running one does."""
    allowed = [True]
    run = Run(may_show=lambda: allowed[0])
    frame = acquire(run.pool, 0)
    frame.y[:, ::2] = 220
    run.ring.put(frame)
    run.wait_for(lambda: len(run.encoder.stamps) >= 3)
    assert min(run.encoder.contrasts) > 200
    allowed[0] = False
    seen = len(run.encoder.stamps)
    run.wait_for(lambda: len(run.encoder.stamps) >= seen + 3)
    run.end()
    assert run.encoder.contrasts[-1] < 60
    assert len(run.encoder.stamps) == len(set(run.encoder.stamps))


def test_after_a_hold_a_frame_or_two_may_be_too_old():
    run = Run()
    run.put(0)
    run.wait_for(lambda: len(run.encoder.stamps) >= 3)
    last = run.encoder.stamps[-1]
    run.put(1)
    run.put(last + 90_000)
    run.wait_for(lambda: run.encoder.stamps[-1] == last + 90_000)
    stamps = run.end()
    assert stamps == sorted(set(stamps))
    assert run.telemetry.dropped()["behind_hold"] == 1


class Slow:
    """A PictureOut in virtual time: pictures are put when the test says so."""

    def __init__(self, plan, **hold):
        """`plan` is (when (s), stamp (s)) of each picture."""
        self.clock = VirtualClock(TableCosts(Costs(costs_ms={"encode": 1.0})), start_ns=NS_PER_S)
        self.encoder = FakeEncoder()
        self.telemetry = Telemetry(self.clock)
        config = Config(hold=HoldConfig(**hold))
        parts: Any = (self.encoder, FakeFanOut(), self.telemetry, config, MARKS, FRAME_MS)
        self.out = PictureOut(*parts)
        self.ring: Ring[Frame] = Ring(2, condition=self.clock.create_condition())
        self.pool = FramePool(*SIZE, 6)
        self.shown: list[tuple[float, float]] = []
        self.out.when_shown = self.note
        self.clock.start("encode", self.encode)
        self.clock.start("feed", lambda: self.feed(plan))
        self.clock.run_until_done()

    def note(self):
        shown = (self.get_s(), self.out.last_pts / 90_000)
        if not self.shown or shown[1] > self.shown[-1][1]:
            self.shown.append(shown)

    def get_s(self):
        return (self.clock.now_ns() - NS_PER_S) / NS_PER_S

    def encode(self):
        self.out.run(self.ring, self.pool, may_hold=True)

    def feed(self, plan):
        for at_s, stamp_s in plan:
            self.clock.sleep_until(round((1 + at_s) * NS_PER_S))
            self.ring.put(acquire(self.pool, round(stamp_s * 90_000)))
        self.ring.close()

    def get_steps(self, since_s=0.0):
        shown = [stamp for at, stamp in self.shown if at >= since_s]
        return [b - a for a, b in itertools.pairwise(shown)]

    def get_lead(self):
        at_s, stamp_s = self.shown[-1]
        return stamp_s - at_s


def play(seconds, *, at_s=0.0, stamp_s=None):
    """Return pictures of so long: from `at_s` on, stamped from `stamp_s` on."""
    first = at_s if stamp_s is None else stamp_s
    return [(at_s + n / 30, first + n / 30) for n in range(round(seconds * 30))]


def test_a_minute_without_a_picture_is_held_at_five_a_second():
    """C35: from a second on, to the end."""
    slow = Slow(play(1) + play(1, at_s=61))
    first, *held = [step for step in slow.get_steps() if step > 0.1]
    assert first == pytest.approx(1.0, abs=0.05)
    assert max(held) <= 0.201
    assert len(held) >= 59 * 5 - 2
    assert slow.telemetry.counts()["held_frames"] >= len(held)


def test_a_source_that_goes_on_as_if_no_time_had_passed_is_followed():
    """C35. Whatever an ingest has missed: a second later its pictures are shown again."""
    slow = Slow(play(2) + play(4, at_s=7, stamp_s=2))
    assert slow.out.shift == pytest.approx(5 * 90_000, abs=20_000)
    assert max(slow.get_steps()) <= 1.05
    assert slow.telemetry.dropped()["behind_hold"] <= 32
    assert slow.get_lead() == pytest.approx(0, abs=0.2)


def test_when_its_line_is_in_real_time_again_what_it_was_moved_by_is_forgotten():
    """A new connection begins where the time is: no jump by the length of an earlier stall."""
    slow = Slow(play(2) + play(4, at_s=7.5, stamp_s=2) + play(2, at_s=12.4))
    assert slow.out.shift == 0
    assert max(slow.get_steps()) <= 1.05
    assert slow.get_lead() == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("apart_s", [1.1, 3.0])
def test_single_stale_pictures_do_not_move_the_line(apart_s):
    stale = [(4.0 + n * apart_s, 2.0 + n / 30) for n in range(3)]
    slow = Slow(play(2) + stale + play(2, at_s=12))
    assert slow.out.shift == 0
    assert slow.telemetry.dropped()["behind_hold"] == 3
    assert slow.get_lead() == pytest.approx(0, abs=0.01)


def test_a_burst_that_catches_up_does_not_move_the_line():
    """Again and again: stamps never run ahead of real time."""
    plan, at_s, stamp_s = [], 0.0, 0.0
    for _ in range(5):
        plan += play(2, at_s=at_s, stamp_s=stamp_s)
        at_s, stamp_s = at_s + 2 + 2.0, stamp_s + 2
        while stamp_s < at_s:
            plan.append((at_s, stamp_s))
            at_s, stamp_s = at_s + 0.012, stamp_s + 1 / 30
    slow = Slow(plan + play(1, at_s=at_s, stamp_s=stamp_s))
    assert slow.out.shift == 0
    assert max(stamp - at for at, stamp in slow.shown) <= 0.05
    assert max(slow.get_steps()) <= 1.05


def test_the_picture_of_a_slow_source_is_not_always_too_old():
    """Two a second from a source that says thirty, half a second late after a stall."""
    late = [(8 + n / 2, 5.5 + n / 2) for n in range(20)]
    slow = Slow(play(2) + late)
    assert slow.shown[-1][0] > 17
    assert slow.telemetry.dropped()["behind_hold"] <= 3


def test_every_frame_comes_back_to_the_pool():
    run = Run()
    for index in range(50):
        run.put(3000 * index)
    run.wait_for(lambda: len(run.encoder.stamps) >= 50)
    run.end()
    assert run.pool.lent == 1  # the one that is held


def test_a_file_is_not_held():
    run = Run(may_hold=False)
    run.put(0)
    threading.Event().wait(0.4)
    assert run.end() == [0]


def test_pictures_that_are_marked_and_keyframes_with_a_record_are_counted(monkeypatch):
    """(R51) Each generated picture once, held ones not again; records on keyframes alone."""
    run = Run()
    slices = {True: b"\0\0\0\1\x65\1", False: b"\0\0\0\1\x41\1"}

    def encode(frame):
        is_key = frame.pts % 6000 == 0
        run.encoder.stamps.append(frame.pts)
        return [Packet("video", slices[is_key], frame.pts, frame.pts, is_keyframe=is_key)]

    monkeypatch.setattr(run.encoder, "encode", encode)
    for number in range(4):
        frame = acquire(run.pool, 3000 * number)
        frame.is_generated = number != 1
        run.ring.put(frame)
    run.wait_for(lambda: run.telemetry.counts().get("held_frames", 0) >= 2)
    stamps = run.end()
    counts = run.telemetry.counts()
    assert counts["marked_frames"] == 3
    assert counts["keyframe_records"] == sum(stamp % 6000 == 0 for stamp in stamps)
