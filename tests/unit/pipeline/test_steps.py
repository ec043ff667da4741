import dataclasses

import msgspec
import numpy as np
import pytest

from livefuse.clock import ManualClock
from livefuse.config import BlurConfig, Config, DetectConfig, ModelsConfig, TrackConfig
from livefuse.errors import ConfigError, ModelError
from livefuse.frame import create_frame
from livefuse.geometry import measure_radius
from livefuse.pipeline.analysis.centerface import CenterFaceDetector
from livefuse.pipeline.analysis.detect_step import DetectStep
from livefuse.pipeline.analysis.track import FaceTracker
from livefuse.pipeline.steps import STEPS, Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.token import OPERATIONS, Parameters, create_token
from tests.faces import create_services
from tests.unit.pipeline.scenes import (
    FRAME_TICKS,
    FakeDetector,
    FakeNetwork,
    create_detection,
    draw_head,
    draw_noise,
)

BOTH = ("detect", "blur")
SERVICES = create_services()


class CountingSessions(SessionCache):
    """Sessions that cannot be had; counts how often they were asked for."""

    def __init__(self):
        super().__init__(ModelsConfig())
        self.asked = 0

    def get(self, name, threads=1):
        self.asked += 1
        raise ModelError(f"{name} is not here")


def create_pipeline(detector, monkeypatch, *, every_n=1, hold_frames=15, clock=None, **blur):
    """A pipeline whose detector is a fake; all else is real."""
    config = Config(track=TrackConfig(hold_frames=hold_frames), blur=BlurConfig(**blur))

    def create_detect(context):
        return DetectStep(FaceTracker(detector, config.track, every_n=every_n, min_score=0.5))

    monkeypatch.setitem(STEPS, "detect", create_detect)
    return Pipeline(config, CountingSessions(), clock or ManualClock(), SERVICES)


def create_job_token(operations=BOTH):
    return create_token(operations, now_epoch_s=0.0)


def is_hidden(outcome, detection):
    if outcome.covered_whole:
        return True
    return any(measure_radius(cover, detection.landmarks5).max() < 1 for cover in outcome.covers)


def test_every_operation_of_a_token_has_a_step():
    assert set(STEPS) == set(OPERATIONS)


def test_no_operations_are_no_work():
    sessions = CountingSessions()
    pipeline = Pipeline(Config(), sessions, ManualClock(), SERVICES)
    frame, _ = draw_head()
    before = frame.buffer.copy()
    token = create_job_token(())
    outcome = pipeline.process(frame, token)
    assert np.array_equal(frame.buffer, before)
    assert (outcome.token, outcome.vouched, outcome.steps) == (token, True, ())
    assert sessions.asked == 0


def test_a_frame_is_covered_and_the_token_tells_how(monkeypatch):
    frame, truth = draw_head()
    before = frame.buffer.copy()
    pipeline = create_pipeline(FakeDetector([truth]), monkeypatch)
    outcome = pipeline.process(frame, create_job_token())
    assert outcome.vouched
    assert not outcome.covered_whole
    assert is_hidden(outcome, truth)
    assert not np.array_equal(frame.buffer, before)
    assert [name for name, _ in outcome.steps] == ["detect", "blur"]
    assert [(entry.state, entry.reason) for entry in outcome.token.log] == [
        ("detect", "detected 1"),
        ("blur", "covered 1"),
    ]
    assert outcome.token.state == "blur"
    assert [face.track_id for face in outcome.faces] == [1]


def test_after_warming_up_the_first_frame_is_looked_at_however_dark(monkeypatch):
    _, truth = draw_head()
    detector = FakeDetector([], [truth])
    pipeline = create_pipeline(detector, monkeypatch, every_n=50)
    pipeline.warm_up(640, 360, create_job_token())
    tried = detector.calls
    frame, _ = draw_head()
    frame.y[:] = 16 + frame.y // 32
    assert is_hidden(pipeline.process(frame, create_job_token()), truth)
    assert detector.calls == tried + 1


def test_detect_alone_changes_no_pixel(monkeypatch):
    frame, truth = draw_head()
    before = frame.buffer.copy()
    pipeline = create_pipeline(FakeDetector([truth]), monkeypatch)
    outcome = pipeline.process(frame, create_job_token(("detect",)))
    assert np.array_equal(frame.buffer, before)
    assert len(outcome.faces) == 1


@pytest.mark.parametrize("error", [ModelError("gone"), ValueError(), MemoryError("full")])
def test_a_step_that_fails_covers_the_frame_and_spares_the_next(monkeypatch, error):
    frame, truth = draw_head()
    pipeline = create_pipeline(FakeDetector([truth], error, error, [truth]), monkeypatch)
    token = create_job_token()
    assert pipeline.process(frame, token).vouched
    frame, _ = draw_head()
    before = frame.y.astype(int)
    outcome = pipeline.process(frame, token)
    assert not outcome.vouched
    assert outcome.covered_whole
    assert outcome.reason == "step_failed"
    assert outcome.error.startswith("detect: ")
    assert outcome.token.state == "detect_failed"
    assert (
        np.abs(np.diff(frame.y.astype(int), axis=1)).max()
        < np.abs(np.diff(before, axis=1)).max() / 4
    )
    assert pipeline.failures == 1
    frame, _ = draw_head()
    again = pipeline.process(frame, token)
    assert again.vouched
    assert is_hidden(again, truth)


def test_a_blur_that_fails_covers_the_frame(monkeypatch):
    frame, truth = draw_head()
    pipeline = create_pipeline(FakeDetector([truth]), monkeypatch)

    def fail(frame, tracks):
        raise RuntimeError("no")

    pipeline.prepare(create_job_token())
    monkeypatch.setattr(pipeline._steps["blur"]._blur, "cover", fail)
    outcome = pipeline.process(frame, create_job_token())
    assert (outcome.vouched, outcome.covered_whole) == (False, True)
    assert outcome.error == "blur: no"


def test_a_job_that_hides_nothing_passes_when_a_step_fails(monkeypatch):
    frame, _ = draw_head()
    before = frame.buffer.copy()
    pipeline = create_pipeline(FakeDetector(ModelError("gone")), monkeypatch)
    outcome = pipeline.process(frame, create_job_token(("detect",)))
    assert (outcome.vouched, outcome.covered_whole) == (False, False)
    assert np.array_equal(frame.buffer, before)


def test_a_network_that_answers_nonsense_covers_the_frame(monkeypatch):
    nonsense = [np.full((1, n, 48, 80), np.nan, np.float32) for n in (1, 2, 2, 10)]
    detector = CenterFaceDetector(FakeNetwork(*nonsense), 320, 160, 0.5)
    frame, _ = draw_head()
    outcome = create_pipeline(detector, monkeypatch).process(frame, create_job_token())
    assert (outcome.vouched, outcome.covered_whole) == (False, True)


@pytest.mark.parametrize("blind", [5, 40])
@pytest.mark.parametrize("every_n", [1, 3])
def test_a_blind_detector_never_bares_a_face_that_moves(monkeypatch, blind, every_n):
    def truth(index):
        return create_detection(200 + 4 * index, 160)

    class Blind(FakeDetector):
        def detect(self, frame, *, light=False):
            index = frame.pts // FRAME_TICKS
            return [] if 10 <= index < 10 + blind else [truth(index)]

    pipeline = create_pipeline(Blind(), monkeypatch, every_n=every_n)
    bare = []
    for index in range(20 + blind):
        frame, _ = draw_head(x=200 + 4 * index, pts=index * FRAME_TICKS)
        outcome = pipeline.process(frame, create_job_token())
        if not is_hidden(outcome, truth(index)):
            bare.append(index)
    assert bare == []


def test_a_face_lost_in_the_middle_is_held_then_the_picture_is_covered(monkeypatch):
    _, truth = draw_head()
    detector = FakeDetector(*[[truth]] * 4, [])
    pipeline = create_pipeline(detector, monkeypatch, hold_frames=5)
    reasons = []
    for index in range(15):
        frame, _ = draw_head()
        if index >= 4:  # flow has nothing to hold on to
            noise = draw_noise(640, 360, seed=index, sigma=3.0)
            frame.y[60:270, 230:410] = noise.y[60:270, 230:410]
        outcome = pipeline.process(frame, create_job_token())
        assert outcome.vouched
        reasons.append(outcome.reason)
        if index < 14:
            assert is_hidden(outcome, truth)
    assert reasons == [""] * 9 + ["lost_face"] * 5 + [""]


@pytest.mark.parametrize("amount", range(9))
def test_any_number_of_faces_is_covered(monkeypatch, amount):
    faces = [create_detection(50 + 70 * index, 150, 0.15) for index in range(amount)]
    pipeline = create_pipeline(FakeDetector(faces), monkeypatch)
    outcome = pipeline.process(draw_noise(640, 360), create_job_token())
    assert len(outcome.faces) == amount
    assert all(is_hidden(outcome, face) for face in faces)


@pytest.mark.parametrize("size", [(2, 2), (66, 34), (854, 480), (1918, 974), (270, 480)])
def test_frames_of_any_even_size(size):
    sessions = SessionCache(ModelsConfig(providers="cpu"))
    pipeline = Pipeline(Config(), sessions, ManualClock(), SERVICES)
    pipeline.warm_up(size[0], size[1], create_job_token())
    assert pipeline.process(create_frame(*size), create_job_token()).vouched


@pytest.mark.parametrize("every_frame", [False, True])
def test_with_the_real_network_one_session_serves_all_frames(every_frame):
    sessions = SessionCache(ModelsConfig(providers="cpu"))
    pipeline = Pipeline(Config(), sessions, ManualClock(), SERVICES, every_frame=every_frame)
    pipeline.warm_up(640, 360, create_job_token())
    assert sessions.created == 1
    ids = []
    for index in range(24):
        x = 250 + 5 * index
        frame, truth = draw_head(x=x, roll=0.01 * index, pts=index * FRAME_TICKS)
        outcome = pipeline.process(frame, create_job_token())
        assert outcome.vouched
        assert is_hidden(outcome, truth)
        ids += [face.track_id for face in outcome.faces]
    assert sessions.created == 1
    assert ids == [1] * 24


def test_blazeface_is_a_name_in_the_configuration():
    config = Config(detect=DetectConfig(model="blazeface_full_192"))
    sessions = SessionCache(ModelsConfig(providers="cpu"))
    pipeline = Pipeline(config, sessions, ManualClock(), SERVICES)
    frame, truth = draw_head()
    outcome = pipeline.process(frame, create_job_token())
    assert is_hidden(outcome, truth)


def test_what_cannot_be_used_is_told_at_the_start():
    sessions = SessionCache(ModelsConfig(providers="cpu"))
    wrong = msgspec.structs.replace(Config(), detect=DetectConfig(model="centrface"))
    with pytest.raises(ModelError, match="did you mean centerface"):
        Pipeline(wrong, sessions, ManualClock(), SERVICES).prepare(create_job_token())
    wrong = msgspec.structs.replace(Config(), blur=BlurConfig(style="picture"))
    with pytest.raises(ConfigError, match="no picture is named"):
        Pipeline(wrong, sessions, ManualClock(), SERVICES).prepare(create_job_token())


def test_an_operation_that_comes_later_and_cannot_be_had_covers_the_frame():
    pipeline = Pipeline(Config(), CountingSessions(), ManualClock(), SERVICES)
    frame, _ = draw_head()
    outcome = pipeline.process(frame, create_job_token())
    assert (outcome.vouched, outcome.covered_whole) == (False, True)
    assert "centerface is not here" in outcome.error


def test_analysis_is_tried_once_more_while_the_frame_is_young(monkeypatch):
    """R10: a frame whose second try works is as good as any."""
    frame, truth = draw_head()
    pipeline = create_pipeline(FakeDetector(ValueError("once"), [truth]), monkeypatch)
    outcome = pipeline.process(frame, create_job_token())
    assert (outcome.vouched, outcome.error) == (True, "")
    assert is_hidden(outcome, truth)


def test_a_frame_whose_turn_is_over_is_not_tried_again(monkeypatch):
    frame, truth = draw_head()
    clock = ManualClock()

    class SlowDetector(FakeDetector):
        def detect(self, frame, *, light=False):
            clock.advance(40 * 1_000_000)
            return super().detect(frame, light=light)

    detector = SlowDetector(ValueError("late"), [truth])
    pipeline = create_pipeline(detector, monkeypatch, clock=clock)
    assert pipeline.process(frame, create_job_token()).covered_whole
    assert detector.calls == 1


def create_policy_token(policy, operations=BOTH):
    return msgspec.structs.replace(
        create_job_token(operations), parameters=Parameters(on_failure=policy)
    )


def test_hold_shows_the_last_good_picture_and_not_for_ever(monkeypatch):
    """R10: the failed frame itself is never seen, later frames are untouched."""
    good, truth = draw_head()
    fault = ValueError("no")
    detector = FakeDetector([truth], *[fault] * 64, [truth])
    pipeline = create_pipeline(detector, monkeypatch)
    token = create_policy_token("hold")
    assert pipeline.process(good, token).vouched
    for index in range(32):
        bad, _ = draw_head(x=200 + index)
        outcome = pipeline.process(bad, token)
        assert not outcome.vouched
        assert outcome.covered_whole
        assert np.array_equal(bad.buffer, good.buffer) == (index < 30)
    frame, _ = draw_head()
    assert pipeline.process(frame, token).vouched


def test_hold_covers_while_there_is_no_good_picture(monkeypatch):
    frame, _ = draw_head()
    before = frame.y.astype(int)
    fault = ValueError("no")
    pipeline = create_pipeline(FakeDetector(fault, fault), monkeypatch)
    assert pipeline.process(frame, create_policy_token("hold")).covered_whole
    assert np.abs(frame.y - before).mean() > 10


def test_consent_is_asked_for_once_a_second_and_obeyed(monkeypatch):
    """C78: a revoked consent covers the whole picture within a second of the frames' time."""
    asked, allowed = [], [True]

    def is_allowed(face_id):
        asked.append(face_id)
        return allowed[0]

    class Noop:
        def prepare(self, token): ...
        def run(self, state): ...
        def reset(self): ...

    for name in ("detect", "align", "swap"):
        monkeypatch.setitem(STEPS, name, lambda context: Noop())
    clock = ManualClock()
    services = dataclasses.replace(create_services(), is_allowed=is_allowed)
    pipeline = Pipeline(Config(), CountingSessions(), clock, services)
    token = msgspec.structs.replace(
        create_job_token(("detect", "align", "swap")), source_face="somebody"
    )
    outcomes = []
    for index in range(90):
        allowed[0] = index < 40
        clock.advance(33_333_333)
        outcomes.append(pipeline.process(create_frame(64, 48), token))
    assert len(asked) <= 4
    assert all(o.vouched and not o.covered_whole for o in outcomes[:40])
    assert all(o.covered_whole and o.reason == "no_consent" for o in outcomes[70:])


def test_what_is_generated_is_said_of_the_frame(monkeypatch):
    frame, truth = draw_head()
    pipeline = create_pipeline(FakeDetector([truth]), monkeypatch)
    pipeline.process(frame, create_job_token())
    assert not frame.is_generated
