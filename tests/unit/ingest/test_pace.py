"""A live line keeps pace with real time, whatever a stall does to the source (C35, C41)."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_S
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.timeline import MIN_STEP, SourceTimeline

BASE = Fraction(1, TIME_BASE_HZ)
FPS = 30


class Line:
    """A timeline that is given (taken, arrives) in seconds, pictures and sound alike."""

    def __init__(self):
        self.counts: Counter[str] = Counter()
        self.timeline = SourceTimeline(lambda name: self.counts.update([name]), is_live=True)
        self.video: list[tuple[float, float]] = []
        self.audio: list[tuple[float, float]] = []

    def take(self, taken_s, arrives_s):
        stamp, ns = round(taken_s * TIME_BASE_HZ), round(arrives_s * NS_PER_S)
        place = self.timeline.stamp_video(stamp, BASE, ns)
        self.video.append((arrives_s, place / TIME_BASE_HZ))
        heard = self.timeline.stamp_audio(stamp, BASE, ns, 3000)
        if heard is not None:
            self.audio.append((arrives_s, heard / TIME_BASE_HZ))

    def run(self, seconds, *, start_s=0.0, late_s=0.0):
        """Take what is taken from `start_s` on and arrives `late_s` later."""
        for index in range(round(seconds * FPS)):
            taken_s = start_s + index / FPS
            self.take(taken_s, taken_s + late_s)

    def check(self):
        for places in (self.video, self.audio):
            assert all(b[1] - a[1] >= MIN_STEP / TIME_BASE_HZ - 1e-9
                       for a, b in itertools.pairwise(places))  # fmt: skip

    def get_lag_s(self, kind="video"):
        """Return how far the last one lies behind the time."""
        arrives_s, place_s = getattr(self, kind)[-1]
        return arrives_s - place_s


@pytest.mark.parametrize("stale", [1, 2, 3])
def test_stale_pictures_after_a_stall_do_not_move_the_line(stale):
    """The camera first gives what it held back, then what is live."""
    line = Line()
    line.run(3)
    for index in range(stale):
        line.take(3 + index / FPS, 10.58)
    line.run(4, start_s=10.6)
    line.check()
    assert line.get_lag_s() == pytest.approx(0, abs=0.001)
    assert line.get_lag_s("audio") == pytest.approx(0, abs=0.001)
    assert not line.counts


@pytest.mark.parametrize("stall_s", [1.1, 3.0, 7.5])
def test_a_source_that_goes_on_where_it_stopped_is_brought_to_real_time(stall_s):
    """Within half a second, sound and pictures together."""
    line = Line()
    line.run(3)
    line.run(5, start_s=3, late_s=stall_s)
    line.check()
    assert line.counts == {"corrected_pts_late": 1}
    for kind in ("video", "audio"):
        on_time = [at for at, place in getattr(line, kind) if at > 3.5 and at - place < 0.2]
        assert on_time[0] <= 3 + stall_s + 0.6
        assert line.get_lag_s(kind) == pytest.approx(0, abs=0.12)


def test_after_that_a_new_connection_goes_on_without_a_jump():
    line = Line()
    line.run(3)
    line.run(5, start_s=3, late_s=6)
    line.timeline.begin_segment(now_ns=round(14.5 * NS_PER_S))
    for index in range(60):
        line.take(500 + index / FPS, 14.5 + index / FPS)
    line.check()
    assert line.get_lag_s() == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("speed", [1.5, 3.0, 10.0])
def test_a_source_that_catches_up_later_does_not_run_ahead(speed):
    """The line was moved while it was late; that is taken back, stall after stall."""
    line = Line()
    taken_s = arrives_s = 0.0
    for _ in range(4):
        for _ in range(3 * FPS):
            line.take(taken_s, arrives_s)
            taken_s, arrives_s = taken_s + 1 / FPS, arrives_s + 1 / FPS
        arrives_s += 3.0
        for _ in range(FPS):  # as if nothing had been
            line.take(taken_s, arrives_s)
            taken_s, arrives_s = taken_s + 1 / FPS, arrives_s + 1 / FPS
        while taken_s < arrives_s - 1e-6:
            line.take(taken_s, arrives_s)
            taken_s, arrives_s = taken_s + 1 / FPS, arrives_s + 1 / FPS / speed
    line.check()
    ahead_s = max(place - arrives for arrives, place in line.video)
    assert ahead_s < 0.1
    assert line.get_lag_s() < 0.2
    assert line.counts["corrected_pts_late"] == 4


def test_a_source_that_jumps_to_what_is_live_later_makes_no_jump():
    line = Line()
    line.run(3)
    line.run(2, start_s=3, late_s=4)
    line.run(3, start_s=9 + 1 / FPS)
    line.check()
    steps = [b[1] - a[1] for a, b in itertools.pairwise(line.video) if a[0] > 7.7]
    assert max(steps) < 0.2
    assert line.get_lag_s() == pytest.approx(0, abs=0.15)
    assert line.get_lag_s("audio") == pytest.approx(0, abs=0.15)


def test_delay_that_comes_and_goes_is_no_stall():
    line = Line()
    for index in range(60 * FPS):
        at_s = index / FPS
        line.take(at_s, at_s + (0.6 if index // 90 % 2 else 0.05) * (index % 90) / 90)
    line.check()
    assert not line.counts


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.5, 4), st.floats(0, 6), st.sampled_from(["skip", "late", "burst"])),
        max_size=6,
    )
)
def test_whatever_stalls_the_line_ends_in_real_time(stalls):
    line = Line()
    taken_s = arrives_s = 0.0
    for runs_s, stall_s, after in [*stalls, (3.0, 0.0, "skip")]:
        for _ in range(round(runs_s * FPS)):
            line.take(taken_s, arrives_s)
            taken_s, arrives_s = taken_s + 1 / FPS, arrives_s + 1 / FPS
        arrives_s += stall_s
        if after == "skip":
            taken_s += stall_s
        elif after == "burst":
            end_s = taken_s + stall_s
            while taken_s < end_s:
                line.take(taken_s, arrives_s)
                taken_s, arrives_s, end_s = taken_s + 1 / FPS, arrives_s + 0.004, end_s + 0.004
    line.check()
    assert -0.5 < line.get_lag_s() < 1.2
    apart_s = line.video[-1][1] - line.audio[-1][1]
    assert abs(apart_s) < 0.1
