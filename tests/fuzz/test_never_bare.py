"""A live job with everything around it going wrong never shows a face that is to be hidden.

A share of what `python -m tests.fuzz --frames 20000` runs; there the reference detector looks at
every picture, here likeness does and the detector at one in five.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import structlog

from livefuse.job.treatment import Treatment
from livefuse.pipeline.steps import Pipeline
from tests.fuzz.plan import Fault, Gap, Hand, Plan, make_case, make_plan
from tests.fuzz.run import Result, create_reference, list_rows, run_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.pipeline.analysis.detect import Detector

FRAMES = 130
SEEDS = range(1, 6)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


@pytest.fixture(scope="module")
def reference() -> Detector:
    return create_reference()


def check(result: Result) -> None:
    told = [f"frame {offence.index}: {offence.what}" for offence in result.offences]
    assert not told, "\n".join([*told[:5], *list_rows(result)])
    assert result.counts["BARE"] == 0
    # Nothing was judged away: what no setting of the job can help is rare and short.
    for excuse in ("too_early", "unfindable"):
        assert result.longest[excuse] <= 5, result.longest


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_is_bare_whatever_happens(reference: Detector, seed: int) -> None:
    result = run_plan(make_plan(seed, FRAMES), reference, detects_every=5)
    check(result)
    assert result.counts["shown"] > FRAMES / 3


def test_the_detector_is_blind_for_five_frames_now_and_then(reference: Detector) -> None:
    """The cover stays with what flow follows (C61)."""
    plan = make_case("C61", 130)
    result = run_plan(plan, reference, detects_every=5)
    check(result)
    assert result.faults["blind"] >= 5
    assert result.counts["faces promised"] > 100
    assert result.counts["blind"] == 0, "not one picture is excused by it"


def test_a_step_stalls_for_three_seconds(reference: Detector) -> None:
    """The stream goes on with the last picture, and what was late is left out (C12)."""
    result = run_plan(make_case("C12", 230), reference, detects_every=5)
    check(result)
    assert result.faults["slow"] == 2
    assert result.counts["held"] >= 8
    assert result.counts["dropped pipeline_busy"] >= 80


@pytest.mark.parametrize(("case", "way"), [("C14", "slate"), ("C18", "pass")])
def test_while_networks_load_all_is_covered(reference: Detector, case: str, way: str) -> None:
    """Even `pass` is none for a job that hides faces (C14, C18)."""
    plan = make_case(case, 90)
    assert plan.sections["pipeline"]["while_loading"] == way
    plan.loading_s = 1.5
    result = run_plan(plan, reference, detects_every=5)
    check(result)
    assert 44 <= result.counts["because loading"] <= 47


def test_a_step_that_fails_on_every_frame_covers_every_frame(reference: Detector) -> None:
    """(C21)"""
    result = run_plan(make_case("C21", 100), reference, detects_every=5)
    check(result)
    assert result.counts["because step_failed"] == 40
    assert result.most_like["whole"] < 0.15


def test_more_is_to_be_hidden_while_the_last_picture_stands(reference: Detector) -> None:
    """Blur is asked for when the camera is silent: what is held must not wait for a frame."""
    plan = make_case("C61", 60)
    plan.faults = []
    plan.token = {"operations": ["detect"]}
    plan.gaps = {40: Gap(3.0)}
    plan.hands = [Hand(40, "patch", {"operations": ["detect", "blur"]})]
    result = run_plan(plan, reference, detects_every=5)
    check(result)
    assert result.counts["held"] >= 8
    assert result.counts["faces not promised"] >= 40, "before it was asked for"
    assert result.counts["faces promised"] >= 20


def test_the_same_seed_gives_the_same_pictures(reference: Detector) -> None:
    one, other = (run_plan(make_plan(3, 40), reference, detects_every=9) for _ in range(2))
    assert one.digest == other.digest
    assert one.counts == other.counts


def test_a_job_that_does_not_cover_is_found_out(
    reference: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with one defence taken away the same runs do not pass."""
    plan = Plan(0, frames=40, scenes=make_case("C61", 40).scenes)
    plan.faults = [Fault("raise", 20, 5, "blur")]
    check(run_plan(plan, reference))
    monkeypatch.setattr(Pipeline, "_must_cover", lambda _self, _state: False)
    assert run_plan(plan, reference).counts["BARE"] == 5
    monkeypatch.undo()
    plan.faults, plan.token = [], {"operations": ["detect"]}
    plan.gaps = {30: Gap(2.0)}
    plan.hands = [Hand(30, "patch", {"operations": ["detect", "blur"]})]
    monkeypatch.setattr(Treatment, "may_show", lambda _self: True)
    assert run_plan(plan, reference).counts["BARE"] > 3
