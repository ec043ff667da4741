"""The journal of a replay: each frame's fate, and a report that is plain JSON, always alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from livefuse.clock import NS_PER_MS, ManualClock
from livefuse.frame import FramePool
from livefuse.pipeline.state import Outcome
from livefuse.replay.decisions import (
    DecisionJournal,
    FrameDecision,
    InputChange,
    ReplayReport,
    RungChange,
    format_report,
)
from livefuse.telemetry import Telemetry
from livefuse.token import create_token
from livefuse.virtual import Costs

if TYPE_CHECKING:
    from livefuse.frame import Frame


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start_ns=1000 * NS_PER_MS)


@pytest.fixture
def journal(clock: ManualClock) -> DecisionJournal:
    return DecisionJournal(clock)


def _arrive(pool: FramePool, clock: ManualClock, journal: DecisionJournal, pts: int) -> Frame:
    frame = pool.acquire()
    assert frame is not None
    frame.pts, frame.arrival_ns = pts, clock.now_ns()
    journal.note_arrived(frame)
    return frame


def _finish(*, spared: tuple[str, ...] = (), reason: str = "") -> Outcome:
    token = create_token(("detect", "blur"), now_epoch_s=0.0)
    token = token.update_state("downgraded_for_performance", at=0.0, reason="deadline: half")
    token = token.update_state("detect", at=0.0, reason="looked at 3")
    return Outcome(
        token=token,
        vouched=True,
        steps=(("detect", 1.0), ("blur", 2.0)),
        covered_whole=bool(reason),
        reason=reason,
        spared=frozenset(spared),
        rung="half",
    )


def test_a_frame_is_followed_from_its_coming_to_its_fate(
    clock: ManualClock, journal: DecisionJournal
) -> None:
    pool = FramePool(16, 16, 2)
    shown, dropped = (_arrive(pool, clock, journal, pts) for pts in (0, 3000))
    journal.note_missed("pool")
    clock.advance(20 * NS_PER_MS)
    journal.note_outcome(shown, _finish(spared=("detect",), reason="lost_face"))
    journal.note_drop(dropped, "pipeline_busy")
    shown.pts += 500
    journal.note_shown(shown, is_held=False)
    clock.advance(200 * NS_PER_MS)
    shown.pts += 18_000
    journal.note_shown(shown, is_held=True)
    first, second, third, held = journal.frames
    assert (first.fate, first.pts, first.shown_pts, first.age_ms) == ("shown", 0, 500, 20.0)
    assert (first.done, first.spared, first.covered) == (("blur",), ("detect",), "lost_face")
    assert first.token == ("downgraded_for_performance (deadline: half)", "detect")
    assert (second.fate, second.reason) == ("dropped", "pipeline_busy")
    assert (third.fate, third.reason, third.pts) == ("dropped", "pool", None)
    assert (held.fate, held.pts, held.at_ms, held.number) == ("held", 18_500, 220.0, 0)
    assert len(held.picture) == 32
    assert held.picture == first.picture


def test_a_place_in_the_pool_that_is_used_again_is_another_frame(
    clock: ManualClock, journal: DecisionJournal
) -> None:
    pool = FramePool(16, 16, 1)
    for pts in range(3):
        frame = _arrive(pool, clock, journal, pts)
        frame.y[:] = 50 + pts
        journal.note_shown(frame, is_held=False)
        pool.release(frame)
    assert [frame.pts for frame in journal.frames] == [0, 1, 2]
    assert len({frame.picture for frame in journal.frames}) == 3


def test_time_on_each_rung_adds_up(clock: ManualClock, journal: DecisionJournal) -> None:
    for wait_ms, rung in ((1000, "half"), (500, "off"), (250, "half")):
        clock.advance(wait_ms * NS_PER_MS)
        journal.note_rung(rung, "deadline")
    clock.advance(125 * NS_PER_MS)
    summary = journal.summarise(Telemetry(clock), "everything")
    assert summary["rung_s"] == {"everything": 1.0, "half": 0.625, "off": 0.25}
    assert (summary["seconds"], summary["rung_changes"]) == (1.875, 3)


def test_more_frames_than_are_kept_are_counted_all_the_same(
    clock: ManualClock, journal: DecisionJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livefuse.replay.decisions.MAX_FRAMES", 5)
    for _ in range(8):
        journal.note_missed("pool")
    assert len(journal.frames) == 5
    assert journal.summarise(Telemetry(clock), "")["dropped"] == {"pool": 8}


def test_a_report_is_json_with_a_frame_on_each_line() -> None:
    report = ReplayReport(
        recording={"file": "a"},
        job={},
        summary={"shown": 2},
        rungs=(RungChange(at_ms=1.5, rung="half", reason="deadline"),),
        input=(InputChange(at_ms=0.0, state="live"),),
        frames=tuple(FrameDecision(number=n, fate="shown") for n in (1, 2)),
        costs=Costs(costs_ms={"detect": 1.0}),
    )
    text = format_report(report)
    told = msgspec.json.decode(text)
    assert list(told) == ["recording", "job", "summary", "rungs", "input", "frames", "costs"]
    assert msgspec.convert(told["costs"], Costs) == report.costs
    assert text.splitlines().count(b'{"number":2,"fate":"shown"}') == 1
