"""What is shown of a frame that may not be seen: the held picture, and jobs that hide a room."""

import msgspec
import numpy as np
import pytest

from livefuse.clock import ManualClock
from livefuse.config import LADDER, Config
from livefuse.frame import create_frame
from livefuse.pipeline.policy import ConsentWatch, HeldPicture
from livefuse.pipeline.state import FrameState, Load
from livefuse.pipeline.steps import STEPS, Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.token import Parameters, create_token
from tests.faces import create_services
from tests.unit.pipeline.scenes import draw_noise

HOLD = Parameters(on_failure="hold")


class FakeStep:
    """Does nothing, or fails."""

    def __init__(self, error=None):
        self.error = error

    def prepare(self, token): ...

    def run(self, state):
        if self.error is not None:
            raise self.error

    def reset(self): ...


def create_state(luma, *, error="", parameters=HOLD, operations=("detect", "blur"), source=""):
    frame = create_frame(64, 32)
    frame.y[:] = luma
    token = create_token(
        operations, now_epoch_s=0.0, parameters=parameters, source_face=source, request_id="r"
    )
    return FrameState(frame, token, error=error, cover_reason="step_failed" if error else "")


def test_a_good_picture_stands_in_for_a_failed_one():
    held = HeldPicture()
    assert not held.serve(create_state(50), must_cover=False)
    failed = create_state(200, error="detect: no")
    assert held.serve(failed, must_cover=True)
    assert failed.frame.y.max() == 50


@pytest.mark.parametrize(
    "change",
    [
        {"operations": ("detect", "align", "swap"), "source": "avatar:robot"},
        {"parameters": msgspec.structs.replace(HOLD, select="largest")},
        {"parameters": msgspec.structs.replace(HOLD, blur_whom="all")},
        {"source": "avatar:fox"},
    ],
)
def test_a_picture_that_was_good_for_another_wish_is_not_held(change):
    """What was bare then may be what is to be hidden now."""
    held = HeldPicture()
    held.serve(create_state(50), must_cover=False)
    failed = create_state(200, error="detect: no", **change)
    assert not held.serve(failed, must_cover=True)
    assert failed.frame.y.min() == 200


def create_pipeline(monkeypatch, **steps):
    for name, step in steps.items():
        monkeypatch.setitem(STEPS, name, lambda context, step=step: step)
    config = Config()
    return Pipeline(config, SessionCache(config.models), ManualClock(), create_services())


def test_a_room_that_could_not_be_hidden_is_not_shown(monkeypatch):
    pipeline = create_pipeline(monkeypatch, background=FakeStep(ValueError("no")))
    frame = draw_noise(128, 64)
    before = frame.y.astype(int)
    outcome = pipeline.process(frame, create_token(["background"], now_epoch_s=0.0))
    assert outcome.covered_whole
    assert outcome.reason == "step_failed"
    assert np.abs(frame.y - before).mean() > 10


def test_a_room_is_not_shown_under_overload_either(monkeypatch):
    pipeline = create_pipeline(monkeypatch, background=FakeStep())
    token = create_token(["background"], now_epoch_s=0.0)
    assert LADDER[-1].cover_only
    outcome = pipeline.finish(pipeline.begin(draw_noise(128, 64), token, Load(LADDER[-1])))
    assert outcome.covered_whole
    assert outcome.reason == "overload"


def test_a_face_that_was_lost_is_nothing_to_a_job_that_hides_the_room(monkeypatch):
    pipeline = create_pipeline(monkeypatch, detect=FakeStep(), background=FakeStep())
    token = create_token(["detect", "background"], now_epoch_s=0.0)
    state = pipeline.begin(draw_noise(128, 64), token)
    for name in token.operations:
        pipeline.run_step(state, name)
    state.cover_reason = "lost_face"
    assert not pipeline.finish(state).covered_whole
    state.error = "background: no"
    assert pipeline.finish(state).covered_whole


def test_a_job_that_only_beautifies_goes_on_when_it_fails(monkeypatch):
    fault = FakeStep(ValueError("no"))
    pipeline = create_pipeline(monkeypatch, detect=FakeStep(), align=FakeStep(), beautify=fault)
    token = create_token(["detect", "align", "beautify"], now_epoch_s=0.0)
    outcome = pipeline.process(draw_noise(128, 64), token)
    assert (outcome.covered_whole, outcome.vouched) == (False, False)


def test_a_picture_may_be_shown_again_while_all_who_are_on_it_agree():
    """R54: the face that is wanted, and the one that is still shown."""
    allowed = {"face_a", "face_b"}
    watch = ConsentWatch(allowed.__contains__)
    watch.shown = "face_a"
    swap = create_token(["detect", "align", "swap"], now_epoch_s=0.0, source_face="face_b")
    assert watch.may_show(swap)
    allowed.remove("face_a")
    assert not watch.may_show(swap)
    assert watch.may_show(create_token(["detect", "blur"], now_epoch_s=0.0))
