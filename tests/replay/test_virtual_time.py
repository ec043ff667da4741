"""Minutes of a live job in seconds: what late frames, stalls and rates do to what is shown."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from livefuse.clock import NS_PER_MS
from livefuse.virtual import Costs, TableCosts
from tests.replay.steps import create_config, create_replay, use_plain_steps
from tests.replay.stream import (
    FPS,
    MadeRecording,
    encode_pictures,
    encode_reordered,
    make_item,
    make_recording,
    open_source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.ingest.playback import Entry
    from livefuse.replay.decisions import FrameDecision, ReplayReport

_RING_DEPTH = 2
_GOP = encode_pictures(FPS, size=(64, 48))
_NO_GOVERNOR = create_config(governor={"enabled": False}, ring={"capacity": _RING_DEPTH})


@pytest.fixture(autouse=True)
def _plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    use_plain_steps(monkeypatch, "detect", "blur")


def _list_fate(report: ReplayReport, fate: str) -> list[FrameDecision]:
    return [frame for frame in report.frames if frame.fate == fate]


def test_a_slow_step_never_makes_the_picture_older_and_older() -> None:
    """(C01) 30 frames a second into a step that does 12, for three minutes."""
    step_ms = 1000 / 12
    replay = create_replay(
        make_recording(_GOP * 180), config=_NO_GOVERNOR, costs={"detect": step_ms}
    )
    report = replay.run()
    # The last one waits for a whole step: nothing newer comes that would take its place.
    *shown, _last = _list_fate(report, "shown")
    ages_ms = np.array([frame.age_ms for frame in shown])
    assert ages_ms.max() <= _RING_DEPTH / FPS * 1000 + step_ms + 0.01
    minutes = np.array([frame.at_ms for frame in shown]) / 60_000
    slope_ms_per_min = np.polyfit(minutes, ages_ms, 1)[0]
    assert abs(slope_ms_per_min) < 1.0
    assert len(shown) == pytest.approx(180 * 12, rel=0.01)
    summary = report.summary
    assert summary["frames_in"] == 180 * FPS
    assert sum(summary["dropped"].values()) == summary["frames_in"] - summary["shown"]
    assert replay.telemetry.dropped() == summary["dropped"]
    assert summary["dropped"] == {"pipeline_busy": len(_list_fate(report, "dropped"))}


@pytest.mark.parametrize("mode", ["live", "every_frame"])
def test_live_drops_and_tells_and_every_frame_drops_none(mode: str) -> None:
    """(C11)"""
    replay = create_replay(
        make_recording(_GOP * 5),
        config=_NO_GOVERNOR,
        mode=mode,  # type: ignore[arg-type] # one of the literal's values
        costs={"detect": 60.0},
    )
    report = replay.run()
    dropped = replay.telemetry.dropped()
    assert report.summary["frames_in"] == 5 * FPS
    if mode == "live":
        assert sum(dropped.values()) == 5 * FPS - report.summary["shown"] > 50
        assert {frame.reason for frame in _list_fate(report, "dropped")} == set(dropped)
    else:
        assert (dropped, report.summary["shown"]) == ({}, 5 * FPS)


def test_a_step_that_stalls_for_three_seconds_leaves_the_stream_alive() -> None:
    """(C12) The picture before is held at five a second; then it goes on with fresh ones."""
    calls_ms = [5.0] * 60 + [3000.0] + [5.0] * 1000
    costs = TableCosts(Costs(calls_ms={"detect": calls_ms}))
    report = create_replay(make_recording(_GOP * 10), costs=costs, config=_NO_GOVERNOR).run()
    left = sorted((frame for frame in report.frames if frame.left), key=lambda frame: frame.left)
    line = [frame.pts or 0 if frame.shown_pts is None else frame.shown_pts for frame in left]
    gaps_ms = [(b - a) / 90 for a, b in itertools.pairwise(line)]
    assert min(gaps_ms) > 0
    assert sorted(gaps_ms)[-2] <= 201  # five a second, once the hold has begun
    assert max(gaps_ms) <= 1100
    held = _list_fate(report, "held")
    assert 9 <= len(held) <= 11
    late = [frame for frame in _list_fate(report, "shown") if frame.at_ms > 5300]
    assert max(frame.age_ms for frame in late) < 100
    # One frame is 3 s old by then, and older than what the hold has shown: it is not shown.
    assert report.summary["dropped"]["behind_hold"] >= 1
    assert report.summary["counts"]["held_frames"] == len(held)


def test_pictures_keep_the_times_of_their_stamps_whatever_rate_was_told() -> None:
    """(C52) A source that says 25 frames a second and sends 30 is shown at 30, by its stamps."""

    def make() -> Iterator[Entry]:
        yield replace(open_source(), fps=25.0)
        for index in range(10 * FPS):
            yield make_item(_GOP[index % FPS], index, index / FPS)

    report = create_replay(MadeRecording(make), costs={"detect": 5.0}).run()
    assert report.job["fps"] == 25.0
    assert {frame.shown_pts for frame in report.frames} == {None}
    stamps = [frame.pts or 0 for frame in _list_fate(report, "shown")]
    assert stamps == [index * 90_000 // FPS for index in range(10 * FPS)]


def test_a_burst_is_shown_as_fast_as_it_can_be_and_then_all_is_as_before() -> None:
    """Half a second's packets come at once: the oldest are dropped, and no delay is left."""
    arrivals_s = [i / FPS if not 30 <= i < 45 else 45 / FPS for i in range(4 * FPS)]
    costs = {"decode": 2.0, "detect": 8.0, "encode": 5.0}
    report = create_replay(make_recording(_GOP * 4, arrivals_s), costs=costs).run()
    after = [f for f in report.frames if f.number > 60]
    assert {frame.fate for frame in after} == {"shown"}
    assert max(frame.age_ms for frame in after) < 11 + 1e-6
    assert set(report.summary["dropped"]) <= {"pipeline_busy"}
    assert report.summary["shown"] + sum(report.summary["dropped"].values()) == 4 * FPS


def test_pictures_that_wait_for_others_are_no_queue() -> None:
    """B-frames hold pictures back for tens of ms: nothing that is spared makes that shorter."""
    items = encode_reordered(200)
    recording = MadeRecording(lambda: iter([open_source(), *items]))
    report = create_replay(recording, costs={"decode": 2.0, "detect": 4.0, "encode": 5.0}).run()
    shown = _list_fate(report, "shown")
    assert min(frame.age_ms for frame in shown[30:]) > 40  # they do wait
    assert (report.rungs, report.summary["dropped"]) == ((), {})


def test_time_in_a_replay_costs_only_its_work() -> None:
    """Ten minutes of waiting passes at once: the same picture is held, five a second."""

    def make() -> Iterator[Entry]:
        yield open_source()
        for index in range(2):
            yield make_item(_GOP[index], index, index / FPS)
        yield make_item(_GOP[0], 0, 600.0)

    replay = create_replay(MadeRecording(make))
    report = replay.run()
    assert report.summary["held"] == pytest.approx(599 * 5, abs=5)
    assert replay.clock.now_ns() >= 600_000 * NS_PER_MS
