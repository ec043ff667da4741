"""Each golden recording gives the decisions that were agreed on, and the same bytes each time."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

import pytest

from livefuse.replay.decisions import format_report
from tests.replay.golden import DATA, SCENES, condense, read_golden, replay_scene

if TYPE_CHECKING:
    from livefuse.replay.decisions import FrameDecision, ReplayReport

_S = 90_000
pytestmark = pytest.mark.timeout(240)


@cache
def _replay(name: str) -> ReplayReport:
    return replay_scene(name)


def _list_left(report: ReplayReport) -> list[tuple[int, FrameDecision]]:
    """Return what left: where on the line, and the frame."""
    left = sorted((frame for frame in report.frames if frame.left), key=lambda frame: frame.left)
    return [
        (frame.pts or 0 if frame.shown_pts is None else frame.shown_pts, frame) for frame in left
    ]


def _list_gaps_ms(report: ReplayReport) -> list[float]:
    places = [place for place, _ in _list_left(report)]
    return [(after - before) / 90 for before, after in itertools.pairwise(places)]


def test_every_recording_has_a_scene() -> None:
    assert {path.stem for path in DATA.glob("*.mkv")} == set(SCENES)


@pytest.mark.parametrize("name", SCENES)
def test_decisions_are_those_that_were_agreed_on(name: str) -> None:
    assert condense(_replay(name)) == read_golden(name), "see tests/replay/update.py"


@pytest.mark.parametrize("name", SCENES)
def test_a_second_replay_gives_the_same_bytes(name: str) -> None:
    assert format_report(replay_scene(name)) == format_report(_replay(name))


@pytest.mark.parametrize("name", SCENES)
def test_what_leaves_never_stands_still_or_goes_back(name: str) -> None:
    """Stamps rise strictly, and no gap is longer than it takes until a hold begins."""
    gaps_ms = _list_gaps_ms(_replay(name))
    assert min(gaps_ms) > 0
    assert max(gaps_ms) <= 1100


@pytest.mark.parametrize("name", SCENES)
def test_every_frame_that_came_is_accounted_for(name: str) -> None:
    report = _replay(name)
    summary = report.summary
    assert summary["shown"] + sum(summary["dropped"].values()) == summary["frames_in"]
    assert all(frame.fate and (frame.picture or frame.reason) for frame in report.frames)
    assert all(frame.faces == 1 for frame in report.frames if frame.fate == "shown")
    assert summary["covered"] == {}


def test_a_burst_leaves_no_delay() -> None:
    """Two seconds come at once: the oldest are dropped, and 0.3 s later all is as before."""
    late = [f for f in _replay("burst").frames if f.at_ms > 3300 and f.fate == "shown"]
    assert len(late) == 21
    assert max(frame.age_ms for frame in late) < 20


def test_a_stall_is_held_five_times_a_second_and_ends_with_the_first_picture() -> None:
    """(C21) The clock of the source went on: what comes is where it belongs, nothing is lost."""
    report = _replay("stall")
    assert [change.state for change in report.input] == ["live", "stalled", "live"]
    held = [frame for frame in report.frames if frame.fate == "held"]
    assert [round(b.at_ms - a.at_ms) for a, b in itertools.pairwise(held)] == [200] * 10
    assert (report.summary["shown"], report.summary["dropped"]) == (90, {})


def test_a_camera_that_restarts_comes_back_with_its_first_picture() -> None:
    report = _replay("restart")
    assert [c.state for c in report.input] == ["live", "lost", "connecting", "live"]
    assert report.summary["counts"]["reconnect"] == 1
    back = next(f for f in report.frames if f.fate == "shown" and f.at_ms > 2900)
    assert back.number == 46
    assert back.age_ms < 20
    assert (back.pts or 0) / _S == pytest.approx(back.at_ms / 1000, abs=0.05)


def test_a_wrap_of_the_stamps_is_not_seen() -> None:
    """(C39)"""
    gaps_ms = _list_gaps_ms(_replay("wrap"))
    assert gaps_ms == pytest.approx([1000 / 30] * 89, abs=0.1)


def test_another_size_is_shown_in_the_first_one() -> None:
    report = _replay("size")
    assert report.job["size"] == "320x180"
    assert report.summary["counts"]["input_changed"] == 1
    assert report.summary["shown"] == 90


def test_a_turned_picture_is_shown_upright() -> None:
    report = _replay("rotation")
    width, height = map(int, report.job["size"].split("x"))
    assert height > width
    assert report.summary["shown"] == 60


def test_missing_stamps_are_mended_from_what_is_usual() -> None:
    gaps_ms = _list_gaps_ms(_replay("missing"))
    assert gaps_ms == pytest.approx([1000 / 30] * 89, abs=0.1)
    assert _replay("missing").summary["counts"]["corrected_pts_missing"] >= 10


def test_damaged_pictures_are_not_shown() -> None:
    """The last good one is held until a whole keyframe comes."""
    report = _replay("noise")
    counts = report.summary["counts"]
    assert counts["corrupt"] + report.summary["frames_in"] in range(80, 91)
    assert report.summary["held"] >= 1
    assert report.frames[-1].fate == "shown"


def test_overload_is_spared_at_once_and_given_back_afterwards() -> None:
    """Enhance costs more than a frame has from 1.5 s to 3 s; nobody misses a picture."""
    report = _replay("overload")
    first, *_, last = report.rungs
    assert first.reason in ("deadline", "queue_delay")
    assert 1500 < first.at_ms < 2500
    assert last.rung == "everything"
    assert last.at_ms > 3000
    dropped = sum(report.summary["dropped"].values())
    assert dropped <= 0.005 * report.summary["frames_in"]
    changed = next(f for f in report.frames if any("downgraded" in state for state in f.token))
    assert changed.at_ms == pytest.approx(first.at_ms, abs=150)
    assert f"downgraded_for_performance ({first.reason}: {first.rung})" in changed.token
