"""The output outlives its input: the last picture goes on, stamps never go back."""

import threading
from typing import Any

import numpy as np
import pytest

from livefuse.clock import NS_PER_MS, NS_PER_S, SystemClock
from livefuse.config import Config, HoldConfig
from livefuse.frame import Frame, FramePool
from livefuse.picture_out import PictureHold, PictureOut
from livefuse.ring import Ring
from livefuse.telemetry import Telemetry

FRAME_MS = 1000 / 30
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
        parts: Any = (self.encoder, FakeFanOut(), self.telemetry, config, "job", FRAME_MS)
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


def test_a_source_that_goes_on_as_if_no_time_had_passed_is_followed():
    run = Run()
    run.put(0)
    run.wait_for(lambda: len(run.encoder.stamps) >= 10)
    for index in range(1, 40):
        run.put(index)
    run.wait_for(lambda: run.telemetry.frames_out.per_s() >= 0 and len(run.encoder.stamps) > 20)
    stamps = run.end()
    assert stamps == sorted(set(stamps))
    assert run.telemetry.dropped()["behind_hold"] <= 30


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
