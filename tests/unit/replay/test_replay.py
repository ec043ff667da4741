"""A recording again: the same decisions each time, holds as live, costs as told."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_S
from livefuse.errors import ConsentError, IngestUnsupportedError
from livefuse.ingest.playback import InputEvent
from livefuse.pipeline.steps import STEPS
from livefuse.replay.decisions import ReplayReport, format_report
from livefuse.virtual import MeasuredCosts, TableCosts
from tests.replay.steps import PlainStep, create_config, create_replay, use_plain_steps
from tests.replay.stream import (
    FPS,
    MadeRecording,
    encode_pictures,
    make_item,
    make_recording,
    open_source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from livefuse.ingest.playback import Entry
    from livefuse.pipeline.state import FrameState
    from livefuse.replay.decisions import FrameDecision
    from livefuse.token import Token

_GOP = encode_pictures(FPS, every=1)


@pytest.fixture(autouse=True)
def _plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    use_plain_steps(monkeypatch, "detect", "blur", "beautify", "align", "enhance")


def _list_shown(report: ReplayReport) -> list[FrameDecision]:
    shown = [frame for frame in report.frames if frame.fate in ("shown", "held")]
    return sorted(shown, key=lambda frame: frame.left)


def _list_line(report: ReplayReport) -> list[int]:
    """Return the stamps that left, in order."""
    shown = [f.shown_pts if f.shown_pts is not None else f.pts for f in _list_shown(report)]
    return [pts for pts in shown if pts is not None]


def test_twice_the_same_bytes() -> None:
    recording = make_recording(_GOP * 3)
    costs = {"decode": 2.0, "detect": 41.0, "blur": 3.0, "encode": 7.0}
    first, second = (format_report(create_replay(recording, costs=costs).run()) for _ in range(2))
    assert first == second
    assert b'"dropped"' in first


def test_what_was_measured_gives_the_same_decisions_again() -> None:
    recording = make_recording(_GOP * 2)
    measured = create_replay(recording, costs=MeasuredCosts()).run()
    assert set(measured.costs.calls_ms) == {"decode", "detect", "blur", "encode"}
    again = create_replay(recording, costs=TableCosts(measured.costs)).run()
    assert format_report(again) == format_report(measured)


def test_each_frame_tells_its_fate_and_what_was_done() -> None:
    report = create_replay(make_recording(_GOP), costs={"detect": 10.0, "blur": 5.0}).run()
    assert [frame.number for frame in report.frames] == list(range(1, FPS + 1))
    assert {frame.fate for frame in report.frames} == {"shown"}
    assert {frame.done for frame in report.frames} == {("detect", "blur")}
    assert {frame.token for frame in report.frames} == {("detect", "blur")}
    assert {frame.age_ms for frame in report.frames} == {15.0}
    assert len({frame.picture for frame in report.frames}) > 10
    assert report.summary["latency_ms"]["p50"] == pytest.approx(15.0, rel=0.02)
    assert report.summary["rung_s"] == {"everything": pytest.approx(29 / 30 + 0.015, abs=0.001)}
    assert report.job["size"] == "160x96"


def test_pictures_are_hashed_as_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Paint(PlainStep):
        def run(self, state: FrameState) -> None:
            state.frame.y[:] = 77

    bare = create_replay(make_recording(_GOP), operations=()).run()
    monkeypatch.setitem(STEPS, "detect", lambda _context: Paint())
    painted = create_replay(make_recording(_GOP)).run()
    assert len({frame.picture for frame in painted.frames}) == 1
    assert len({frame.picture for frame in bare.frames}) > 10


def _lose_after(seconds: float, away_s: float) -> MadeRecording:
    def make() -> Iterator[Entry]:
        yield open_source()
        count = round(seconds * FPS)
        for index in range(count):
            yield make_item(_GOP[index % FPS], index, index / FPS)
        yield InputEvent("stalled", round((seconds + 1) * NS_PER_S))
        yield InputEvent("lost", round((seconds + 2) * NS_PER_S))
        back_s = seconds + away_s
        yield open_source(round(back_s * NS_PER_S))
        for index in range(2 * FPS):
            yield make_item(_GOP[index % FPS], index, back_s + index / FPS)
        yield InputEvent("ended", round((back_s + 2) * NS_PER_S))

    return MadeRecording(make)


def test_an_input_that_was_lost_is_held_as_live_and_comes_back_with_its_first_picture() -> None:
    report = create_replay(_lose_after(2.0, away_s=5.0), costs={"detect": 5.0, "encode": 2.0}).run()
    states = [change.state for change in report.input]
    assert states == ["live", "stalled", "lost", "live", "ended"]
    assert report.summary["counts"]["reconnect"] == 1
    line = _list_line(report)
    assert all(one < next_ for one, next_ in itertools.pairwise(line))
    gaps_s = [(b - a) / 90_000 for a, b in itertools.pairwise(line)]
    assert max(gaps_s) == pytest.approx(1.0, abs=0.1)  # until the hold begins
    assert sorted(gaps_s)[-2] <= 0.2 + 1e-3  # five a second from then on
    held = [frame for frame in report.frames if frame.fate == "held"]
    assert 18 <= len(held) <= 21
    assert {frame.picture for frame in held} == {report.frames[59].picture}
    back = next(frame for frame in report.frames if frame.fate == "shown" and frame.at_ms > 6000)
    assert back.at_ms == pytest.approx(7000, abs=1)


def test_pictures_that_cannot_be_decoded_are_as_a_loss_until_some_can() -> None:
    """A live job dials again then; a recording goes on with what came."""
    noise = random.Random(1)
    broken = [b"\0\0\0\1\x65" + noise.randbytes(200) for _ in range(5 * FPS)]
    report = create_replay(make_recording([*_GOP, *broken, *_GOP])).run()
    assert [change.state for change in report.input] == ["live", "lost", "live"]
    assert report.summary["counts"]["reconnect"] >= 1
    assert report.summary["shown"] == 2 * FPS
    back = next(frame for frame in report.frames if frame.fate == "shown" and frame.at_ms > 2000)
    assert back.at_ms == pytest.approx(6000, abs=1)
    assert report.summary["held"] >= 15


def test_a_picture_is_covered_while_a_step_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(PlainStep):
        def run(self, state: FrameState) -> None:
            if not state.is_trial:
                raise ValueError("no")

    monkeypatch.setitem(STEPS, "blur", lambda _context: Failing())
    report = create_replay(make_recording(_GOP)).run()
    assert report.summary["covered"] == {"step_failed": FPS}
    assert report.frames[3].error == "blur: no"
    assert report.frames[3].token == ("detect", "blur_failed")


def test_every_frame_is_treated_when_none_may_be_lost(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    replay = create_replay(
        make_recording(_GOP * 2),
        mode="every_frame",
        targets=(str(path),),
        costs={"detect": 90.0},
        # What has a thread of its own is left out: it could not follow virtual time.
        config=create_config(publish={"delay_ms": 500}, http={"enabled": True}),
    )
    report = replay.run()
    assert report.summary["shown"] == report.summary["frames_in"] == 2 * FPS
    assert report.summary["rung_s"] == {}
    (output,) = replay.list_outputs()
    assert (output["packets"], output["dropped"]) == (2 * FPS, 0)
    assert path.stat().st_size > 1000


def test_side_work_is_done_at_once_while_frames_are_treated_as_live(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[bool, bool]] = []

    class Asking(PlainStep):
        def __init__(self, context) -> None:
            self._context = context

        def run(self, state: FrameState) -> None:
            seen.append((self._context.every_frame, self._context.aside.submit(int).done()))

    monkeypatch.setitem(STEPS, "detect", Asking)
    create_replay(make_recording(_GOP[:3])).run()
    assert set(seen) == {(False, True)}


def test_a_source_that_may_not_be_shown_ends_the_replay_before_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing(PlainStep):
        def prepare(self, token: Token) -> None:
            raise ConsentError("nobody has consented")

    monkeypatch.setitem(STEPS, "detect", lambda _context: Refusing())
    with pytest.raises(ConsentError):
        create_replay(make_recording(_GOP)).run()


def test_a_recording_without_a_picture_is_told() -> None:
    recording = make_recording([b"\0\0\0\1\x09\x10"] * 5)
    with pytest.raises(IngestUnsupportedError, match="holds no picture"):
        create_replay(recording).run()


def test_the_machine_does_not_press_a_replay() -> None:
    """Memory and heat of the machine that replays are no part of what was recorded."""
    config = create_config(governor={"watch_machine": True, "memory_share": 0.0001})
    report = create_replay(make_recording(_GOP * 2), config=config, costs={"detect": 1.0}).run()
    assert report.rungs == ()


_GAPS_S = st.lists(
    st.sampled_from((0.0, 0.0, 1 / FPS, 1 / FPS, 1 / FPS, 0.1, 0.7, 2.5)), min_size=20, max_size=45
)
_COSTS = st.fixed_dictionaries(
    {work: st.sampled_from((0.0, 2.0, 15.0, 45.0)) for work in ("decode", "detect", "encode")}
)


@settings(
    max_examples=10,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # each try to shrink takes a second
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(gaps_s=_GAPS_S, costs=_COSTS)
def test_whatever_comes_when_each_frame_has_one_fate_and_the_line_goes_on(
    gaps_s: list[float], costs: dict[str, float]
) -> None:
    arrivals_s = list(itertools.accumulate(gaps_s))
    recording = make_recording((_GOP * 2)[: len(gaps_s)], arrivals_s)
    report = create_replay(recording, costs=costs).run()
    assert format_report(create_replay(recording, costs=costs).run()) == format_report(report)
    came = [frame for frame in report.frames if frame.fate != "held"]
    assert [frame.number for frame in came] == list(range(1, len(gaps_s) + 1))
    assert {frame.fate for frame in came} <= {"shown", "dropped"}
    line = _list_line(report)
    assert all(one < next_ for one, next_ in itertools.pairwise(line))
    assert max(b - a for a, b in itertools.pairwise(line)) <= 3 * 90_000
