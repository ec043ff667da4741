"""Sound and pictures stay in step and in real time, whatever a source does to its stamps (C41)."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_S
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.timeline import MIN_STEP, SourceTimeline

BASE = Fraction(1, TIME_BASE_HZ)
SECONDS = 14
LAST_FAULT_S = 10
LIMIT = TIME_BASE_HZ * 40 // 1000


class Fault(NamedTuple):
    """What one kind's stamps suffer from `start_s` on, for `length_s`."""

    kind: str
    start_s: float
    length_s: float
    what: str


def list_media(seconds):
    """Return when each picture (30 a second) and each sound packet (1024 of 48 kHz) was taken."""
    pictures = [(i / 30, "video") for i in range(seconds * 30)]
    sounds = [(i * 1024 / 48_000, "audio") for i in range(seconds * 48_000 // 1024)]
    return sorted(pictures + sounds)


def damage(stamp, kind, at_s, faults, last):
    """Return the stamp as a faulty source gives it."""
    found = [f for f in faults if f.kind == kind and f.start_s <= at_s < f.start_s + f.length_s]
    if not found:
        last[kind] = stamp
        return stamp
    return {
        "missing": None,
        "repeated": last.get(kind, stamp),
        "back": stamp - TIME_BASE_HZ,
        "a little back": stamp - TIME_BASE_HZ // 10,
        "ahead": stamp + 5 * TIME_BASE_HZ,
    }[found[0].what]


def play(media, *, start=0, jumps=(), faults=(), bits=64, jitters=(0.0,)):
    """Return (time, kind, place) of all that was placed, and what was counted."""
    counts: Counter[str] = Counter()
    timeline = SourceTimeline(lambda name: counts.update([name]), is_live=True)
    placed, now = [], 0.0
    last: dict[str, int] = {}
    for number, (at_s, kind) in enumerate(media):
        moved = sum(by for since, by in jumps if at_s >= since)
        stamp = (start + round((at_s + moved) * TIME_BASE_HZ)) % (1 << bits)
        now = max(now, at_s + jitters[number % len(jitters)])
        arrival_ns = round(now * NS_PER_S)
        given = damage(stamp, kind, at_s, faults, last)
        place: int | None
        if kind == "video":
            place = timeline.stamp_video(given, BASE, arrival_ns)
        else:
            place = timeline.stamp_audio(given, BASE, arrival_ns, 1920)
        if place is not None:
            placed.append((at_s, kind, place))
    return placed, counts


def check_order(placed):
    for kind in ("video", "audio"):
        places = [place for _, one, place in placed if one == kind]
        assert all(b - a >= MIN_STEP for a, b in itertools.pairwise(places))


def get_errors(placed, since_s):
    """Return how far sound lies from pictures, and each from its own time, in 1/90000 s."""
    late = {
        kind: [place - round(at * TIME_BASE_HZ) for at, one, place in placed
               if one == kind and at > since_s]
        for kind in ("video", "audio")
    }  # fmt: skip
    apart = max(
        abs(max(late["video"]) - min(late["audio"])), abs(max(late["audio"]) - min(late["video"]))
    )
    return apart, max(map(abs, late["video"] + late["audio"]))


FAULT = st.builds(
    Fault,
    st.sampled_from(["video", "audio"]),
    st.floats(1, LAST_FAULT_S - 2),
    st.floats(0.01, 1.5),
    st.sampled_from(["missing", "repeated", "back", "a little back", "ahead"]),
)
JUMP = st.tuples(
    st.floats(2, LAST_FAULT_S), st.floats(-10_000, 10_000).filter(lambda by: abs(by) > 0.3)
)
JITTERS = st.lists(st.floats(0, 0.02), min_size=1, max_size=7)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 33), st.lists(FAULT, max_size=5), JITTERS)
def test_faults_of_one_kind_leave_it_in_step_with_the_other(start, faults, jitters):
    placed, _ = play(list_media(SECONDS), start=start, faults=faults, jitters=jitters)
    check_order(placed)
    apart, late = get_errors(placed, LAST_FAULT_S + 2)
    assert apart <= LIMIT
    # Where both suffered at once nothing was left that told the true time.
    assert late <= (LIMIT if len({fault.kind for fault in faults}) < 2 else TIME_BASE_HZ // 4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 33), st.lists(JUMP, max_size=4), st.lists(FAULT, max_size=3), JITTERS)
def test_jumps_of_the_sources_clock_leave_sound_and_pictures_in_step(start, jumps, faults, jitters):
    placed, _ = play(
        list_media(SECONDS), start=start + (1 << 34), jumps=jumps, faults=faults, jitters=jitters
    )
    check_order(placed)
    apart, late = get_errors(placed, LAST_FAULT_S + 2)
    assert apart <= LIMIT
    # Each jump costs at most about a picture: what it stood for cannot be known exactly.
    assert late <= LIMIT * (len(jumps) + 1) + (TIME_BASE_HZ // 4 if faults else 0)


@pytest.mark.parametrize(("bits", "name"), [(33, "MPEG-TS"), (32, "RTP"), (31, "FLV")])
def test_wraps(bits, name):
    """Of 90 kHz in 33 bits (MPEG-TS) and 32 (RTP); FLV's milliseconds fill 31 or 32."""
    placed, counts = play(list_media(10), start=(1 << bits) - 5 * TIME_BASE_HZ, bits=bits)
    check_order(placed)
    apart, late = get_errors(placed, 6)
    assert counts == {"corrected_pts_jump": 2}, name
    assert apart == 0
    assert late <= LIMIT


def test_an_hour_of_faults_does_not_drift():
    kinds = itertools.cycle(["missing", "repeated", "back", "a little back", "ahead"])
    faults = [
        Fault("audio" if number % 2 else "video", 10.0 + 20 * number, 0.02 + number % 7 / 10, what)
        for number, what in zip(range(175), kinds, strict=False)
    ]
    near = [
        [fault for fault in faults if fault.start_s // 20 == part] for part in range(3600 // 20)
    ]
    counts: Counter[str] = Counter()
    timeline = SourceTimeline(lambda name: counts.update([name]), is_live=True)
    late = 0
    last: dict[str, int] = {}
    for at_s, kind in list_media(3600):
        stamp = damage(round(at_s * TIME_BASE_HZ), kind, at_s, near[int(at_s // 20)], last)
        ns = round(at_s * NS_PER_S)
        if kind == "video":
            place = timeline.stamp_video(stamp, BASE, ns)
        else:
            place = timeline.stamp_audio(stamp, BASE, ns, 1920) or 0
        if at_s % 20 > 19:
            late = max(late, abs(place - round(at_s * TIME_BASE_HZ)))
    assert sum(counts.values()) > 500
    assert late <= LIMIT
