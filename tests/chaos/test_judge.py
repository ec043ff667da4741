"""The judges can fail: each fault of a recording that they look for, in one made to have it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.chaos.bare import SAME, BareJudge, Reference
from tests.chaos.judge import (
    Seen,
    Track,
    _Counting,
    count_not_rising,
    find_calm,
    find_gaps,
    find_steps_back,
    measure_sync,
    read_track,
)
from tests.chaos.peers import FPS, LOOP_FRAMES
from tests.chaos.plan import Fault
from tests.chaos.quiet import Second, fit_slope, judge_quiet
from tests.chaos.run import Done, Outcome, Sample
from tests.chaos.verdict import Verdict, _is_excused, note_recoveries


def count_on(raws, pts_s=None, begins_s=0.0):
    counting = _Counting(begins_s, None)
    pts_s = pts_s or [index / FPS for index in range(len(raws))]
    numbers = [counting.count(raw, at_s) for raw, at_s in zip(raws, pts_s, strict=True)]
    seen = [Seen(p, r, n, i) for i, (p, r, n) in enumerate(zip(pts_s, raws, numbers, strict=True))]
    return Track("made", seen, shift_s=counting.shift_s)


def test_the_counter_goes_round_and_is_counted_on():
    raws = [(LOOP_FRAMES - 3 + i) % LOOP_FRAMES for i in range(6)]
    track = count_on(raws, begins_s=(LOOP_FRAMES - 3) / FPS)
    assert [seen.number for seen in track.seen] == list(range(LOOP_FRAMES - 3, LOOP_FRAMES + 3))
    assert find_steps_back(track) == []


def test_a_picture_that_comes_again_is_a_step_back_and_a_held_one_is_not():
    assert find_steps_back(count_on([10, 11, 12, 11, 13])) == [(3 / FPS, 12, 11)]
    assert find_steps_back(count_on([10, 11, 11, 11, 15])) == []
    # Held for longer than half a round, then live again.
    held = count_on([100, 100, 430], [0.0, 10.5, 11.0], begins_s=100 / FPS)
    assert [seen.number for seen in held.seen] == [100, 100, 430]
    assert find_steps_back(held) == []


def test_gaps_and_stamps():
    assert find_gaps([0.0, 1.0, 2.6, 2.7]) == [(1.0, 2.6)]
    assert count_not_rising([1, 2, 2, 3, 1]) == 2


def test_calm_begins_five_seconds_after_a_fault():
    assert find_calm([(10.0, 12.0), (13.0, 14.0)], 0.0, 40.0) == [(0.0, 10.0), (19.0, 40.0)]
    assert find_calm([], 0.0, 5.0) == [(0.0, 5.0)]


def make_outcome(kind, group, began_s, ended_s):
    fault = Fault(began_s, kind, group, ended_s - began_s)
    return Outcome(0, ended_s=60.0, done=[Done(fault, began_s, ended_s)])


def test_only_what_the_run_itself_did_is_excused():
    frozen = make_outcome("freeze", "process", 10.0, 12.0)
    assert _is_excused(frozen, "steady", 10.0, 13.4)
    assert not _is_excused(frozen, "steady", 10.0, 13.6)
    killed = make_outcome("server_kill", "server", 10.0, 12.0)
    assert _is_excused(killed, "harmed", 10.0, 15.0)
    assert not _is_excused(killed, "steady", 10.0, 15.0)
    assert not _is_excused(killed, "harmed", 30.0, 35.0)


def test_recovery_is_when_it_stays_well():
    outcome = make_outcome("camera_kill", "camera", 10.0, 12.0)
    good = {13.0: True, 14.0: False, 15.0: True, 16.0: True}
    outcome.samples = [Sample(at_s, is_good, {}) for at_s, is_good in good.items()]
    note_recoveries(outcome)
    assert outcome.done[0].recovered_s == pytest.approx(3.0)
    outcome.samples[-1].is_good = False
    note_recoveries(outcome)
    assert outcome.done[0].recovered_s is None


def test_one_line_that_fails_fails_all():
    verdict = Verdict()
    verdict.check("a", 1, "", is_kept=True)
    verdict.tell("b", 2)
    assert verdict.is_kept()
    verdict.check("c", 3, "", is_kept=False)
    assert not verdict.is_kept()
    assert "FAILED" in verdict.format().splitlines()[-1]


def test_an_untreated_recording_is_found_bare_by_both_judges(face_clip, monkeypatch):
    reference = Reference(face_clip)
    by_likeness = BareJudge(reference, has_faces=True, detects=False)
    track = read_track(face_clip, by_likeness.look)
    assert len(by_likeness.bare) >= 0.99 * len(track.seen), "with an avatar likeness alone judges"
    assert min(by_likeness.likeness) > 1.5 * SAME
    offsets, mute = measure_sync(track, [(0.0, 11.5)])
    assert len(offsets) >= 10
    assert mute == 0
    assert max(map(abs, offsets)) <= 40
    monkeypatch.setattr(reference, "measure_likeness", lambda *_: 0.9 * SAME)  # the detector alone
    by_detector = BareJudge(reference, has_faces=False)
    for seen in track.seen[:4]:
        by_detector.look(seen, reference.lumas[seen.index], _wrap(reference, seen.index))
    assert len(by_detector.bare) == 4


def _wrap(reference, index):
    import av

    luma = reference.lumas[index]
    chroma = np.full((luma.shape[0] // 2, luma.shape[1]), 128, np.uint8)
    return av.VideoFrame.from_ndarray(np.vstack([luma, chroma]), format="yuv420p")


def make_seconds(rss=lambda t: 200.0, threads=lambda t: 20, latency=lambda t: 15.0, minutes=10):
    chance = np.random.default_rng(1)
    return [
        Second(t, rss(t) + chance.normal(0, 0.3), threads(t), 50, latency(t) + chance.normal(0, 1))
        for t in range(60 * minutes)
    ]


def test_what_is_steady_is_told_from_what_creeps():
    still = [(float(t), 30.0) for t in range(600)]
    assert judge_quiet(make_seconds(), still)[1]
    assert not judge_quiet(make_seconds(rss=lambda t: 200 + t / 120), still)[1]
    assert not judge_quiet(make_seconds(threads=lambda t: 20 + t // 300), still)[1]
    assert not judge_quiet(make_seconds(latency=lambda t: 15 + t / 30), still)[1]
    assert not judge_quiet(make_seconds(), [(t, 30.0 + t / 30) for t, _ in still])[1]
    assert not judge_quiet([], [])[1]


def test_a_slope_has_its_error():
    chance = np.random.default_rng(2)
    times = list(range(600))
    slope = fit_slope(times, [3.0 * t / 60 + chance.normal(0, 1) for t in times])
    assert slope.per_min == pytest.approx(3.0, abs=5 * slope.error)
    assert 0 < slope.error < 0.1
