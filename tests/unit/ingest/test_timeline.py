"""Time stamps of any source become strictly increasing ints on the job's line."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.timeline import MIN_STEP, SourceTimeline, to_ticks

MS = Fraction(1, 1000)
STEP = TIME_BASE_HZ // 30


def make_timeline(*, is_live=True):
    counts: Counter[str] = Counter()
    return SourceTimeline(lambda name: counts.update([name]), is_live=is_live), counts


def run_video(timeline, stamps_ms, *, start_ms=0):
    """Stamp pictures that arrive 33 ms apart."""
    return [
        timeline.stamp_video(stamp, MS, (start_ms + 33 * i) * NS_PER_MS)
        for i, stamp in enumerate(stamps_ms)
    ]


def is_increasing(places, least=MIN_STEP):
    return all(b - a >= least for a, b in itertools.pairwise(places))


def test_regular_stamps_pass_unchanged_from_zero():
    timeline, counts = make_timeline()
    places = run_video(timeline, [5000 + 33 * i for i in range(50)])
    assert places == [33 * 90 * i for i in range(50)]
    assert not counts


def test_repeated_backwards_and_missing_stamps_are_mended_and_counted():
    """C38."""
    timeline, counts = make_timeline()
    stamps: list[int | None] = [33 * i for i in range(60)]
    stamps[10] = stamps[9]
    stamps[20] = 33 * 20 - 1000
    stamps[30] = None
    places = run_video(timeline, stamps)
    assert is_increasing(places)
    assert counts == {
        "corrected_pts_order": 1,
        "corrected_pts_jump": 2,
        "corrected_pts_missing": 1,
    }
    assert abs(places[-1] - 33 * 90 * 59) <= STEP


def test_source_that_steps_back_a_second_for_good_goes_on_at_its_pace():
    """C38."""
    timeline, counts = make_timeline()
    places = run_video(timeline, [33 * i - (1000 if i >= 30 else 0) for i in range(60)])
    assert is_increasing(places)
    assert counts["corrected_pts_jump"] == 1
    assert abs(places[-1] - 33 * 90 * 59) <= STEP


@given(st.lists(st.integers(14, 61), min_size=2, max_size=120))
def test_variable_frame_rate_never_collides(rates):
    """C39."""
    timeline, counts = make_timeline()
    now, places = 0.0, []
    for rate in rates:
        now += 1000 / rate
        places.append(timeline.stamp_video(round(now), MS, int(now * NS_PER_MS)))
    assert is_increasing(places)
    assert not counts
    assert len({place // 90 for place in places}) == len(places)


@pytest.mark.parametrize("jump_ms", [300, 2000, 100_000, -300, -100_000])
def test_jump_is_reanchored(jump_ms):
    """C41."""
    timeline, counts = make_timeline()
    places = run_video(
        timeline, [200_000 + 33 * i + (jump_ms if i >= 20 else 0) for i in range(40)]
    )
    assert counts == {"corrected_pts_jump": 1}
    assert is_increasing(places)
    assert places[20] - places[19] <= 2 * STEP


def test_stuck_then_jumping_stamps_stay_in_real_time():
    """C41."""
    timeline, _ = make_timeline()
    stamps = [33 * i for i in range(80)]
    stamps[20:50] = [stamps[19]] * 30
    places = run_video(timeline, stamps)
    assert is_increasing(places)
    assert abs(places[-1] - 33 * 90 * 79) <= 2 * STEP


def test_a_gap_that_really_took_that_long_is_kept():
    timeline, counts = make_timeline()
    timeline.stamp_video(0, MS, 0)
    assert timeline.stamp_video(3000, MS, 3 * NS_PER_S) == 3 * TIME_BASE_HZ
    assert not counts


def test_long_still_in_a_file_is_kept_without_arrival_times():
    timeline, counts = make_timeline(is_live=False)
    timeline.stamp_video(0, MS, 0)
    assert timeline.stamp_video(4000, MS, 1) == 4 * TIME_BASE_HZ
    assert not counts


def test_sound_and_pictures_share_one_origin():
    timeline, _ = make_timeline()
    first = timeline.stamp_video(10_000, MS, 0)
    audio = timeline.stamp_audio(48 * 10_050, Fraction(1, 48_000), 50 * NS_PER_MS, 1920)
    assert first == 0
    assert audio == 50 * 90


def test_sound_from_before_the_first_picture_is_left_out():
    timeline, counts = make_timeline()
    timeline.stamp_video(1000, MS, 0)
    assert timeline.stamp_audio(980, MS, NS_PER_MS, 1920) is None
    assert timeline.stamp_audio(1001, MS, 2 * NS_PER_MS, 1920) == 90
    assert counts == {"early_audio": 1}


@pytest.mark.parametrize("late_ms", [500, 2500, 9000])
def test_a_start_that_takes_seconds_leaves_its_sound_in_step(late_ms):
    """(C51) Pictures were skipped while networks loaded; the sound of that time is not theirs."""
    timeline, counts = make_timeline()
    assert timeline.stamp_video(7000 + late_ms, MS, late_ms * NS_PER_MS) == 0
    places = {
        at_ms: timeline.stamp_audio(7000 + at_ms, MS, at_ms * NS_PER_MS, 1800)
        for at_ms in range(0, late_ms + 1000, 20)
    }
    for at_ms, place in places.items():
        assert place == (None if at_ms < late_ms else (at_ms - late_ms) * 90)
    assert set(counts) == {"early_audio"}


def test_file_starts_with_its_earliest_stamp():
    timeline, _ = make_timeline(is_live=False)
    timeline.begin_segment((0, MS), (40, MS), now_ns=0, step=3600)
    assert timeline.stamp_video(40, MS, 0) == 3600
    assert timeline.stamp_audio(0, MS, 0, 1920) == 0


def test_when_pictures_jump_sound_follows_by_the_same_amount():
    timeline, counts = make_timeline()
    video, audio = {}, {}
    for i in range(300):
        moved = i * 10 + (50_000 if i >= 150 else 0)
        if i % 3 == 0:
            video[i] = timeline.stamp_video(moved, MS, i * 10 * NS_PER_MS)
        if i % 2 == 0:
            audio[i] = timeline.stamp_audio(moved, MS, i * 10 * NS_PER_MS, 1800)
    assert counts["corrected_pts_jump"] == 2
    assert video[294] == audio[294]


def test_wrapping_mpegts_stamps_go_on():
    timeline, counts = make_timeline()
    base, top = Fraction(1, 90_000), 1 << 33
    places = [
        timeline.stamp_video((top - 90_000 + 3000 * i) % top, base, i * 33_333_333)
        for i in range(90)
    ]
    assert is_increasing(places)
    assert abs(places[-1] - 3000 * 89) <= STEP
    assert counts == {"corrected_pts_jump": 1}


def test_unrelated_starts_of_sound_and_pictures_are_joined_by_arrival():
    timeline, counts = make_timeline()
    timeline.stamp_video(0, MS, 0)
    place = timeline.stamp_audio(7_000_000, MS, 20 * NS_PER_MS, 1920)
    assert place == 20 * 90
    assert counts == {"corrected_pts_jump": 1}


def test_after_a_reconnect_the_line_goes_on_by_real_time():
    timeline, counts = make_timeline()
    run_video(timeline, [33 * i for i in range(30)])
    timeline.begin_segment(now_ns=20 * NS_PER_S)
    video = timeline.stamp_video(777_000, MS, 20 * NS_PER_S)
    audio = timeline.stamp_audio(777_010, MS, 20 * NS_PER_S, 1920)
    assert video == 20 * TIME_BASE_HZ
    assert audio == video + 900
    assert not counts


def test_first_picture_without_a_stamp_keeps_sound_and_pictures_in_step():
    """RTSP, by FFmpeg: the first picture has no stamp, the second one 33 ms."""
    timeline, counts = make_timeline()
    assert timeline.stamp_video(None, MS, 2 * NS_PER_MS) == 0
    assert timeline.stamp_audio(0, MS, NS_PER_MS, 1920) == 0
    assert timeline.stamp_video(33, MS, 35 * NS_PER_MS) == 33 * 90
    assert counts == {"corrected_pts_missing": 1}


def test_a_falsy_time_base_counts_as_missing():
    timeline, counts = make_timeline()
    timeline.stamp_video(1, MS, 0)
    assert timeline.stamp_video(2, Fraction(0), NS_PER_MS) > 0
    assert counts == {"corrected_pts_missing": 1}


def test_stamps_are_rounded_to_the_nearest_tick():
    assert to_ticks(1, Fraction(1001, 30_000)) == 3003
    assert to_ticks(1, Fraction(1, 44_100)) == 2
    assert to_ticks(-1, Fraction(1, 44_100)) == -2


STAMP = st.one_of(st.none(), st.integers(-(1 << 40), 1 << 40), st.integers(0, 3000))
EVENT = st.tuples(st.sampled_from(["video", "audio", "segment"]), STAMP, st.integers(0, 5000))


@given(st.lists(EVENT, max_size=80), st.booleans(), st.sampled_from([MS, Fraction(1, 48_000)]))
def test_whatever_comes_each_kind_strictly_increases(events, is_live, base):
    """C38."""
    timeline, _ = make_timeline(is_live=is_live)
    now, video, audio = 0, [], []
    for kind, stamp, wait_ms in events:
        now += wait_ms * NS_PER_MS
        if kind == "segment":
            timeline.begin_segment(now_ns=now)
        elif kind == "video":
            video.append(timeline.stamp_video(stamp, base, now))
        elif (place := timeline.stamp_audio(stamp, base, now, 1920)) is not None:
            audio.append(place)
    for places in (video, audio):
        assert is_increasing(places)
        assert not places or places[0] >= 0


def test_after_an_outage_a_missing_first_stamp_keeps_the_time_that_passed():
    """RTSP gives no stamp with the first picture of a connection."""
    timeline, _ = make_timeline()
    before = run_video(timeline, [33 * i for i in range(30)])
    timeline.begin_segment(now_ns=6 * NS_PER_S)
    after = run_video(timeline, [None, 33, 66, 99], start_ms=6000)
    assert after[0] == 6 * TIME_BASE_HZ
    assert is_increasing(before + after)
    assert after[-1] - after[0] < TIME_BASE_HZ // 4
