"""The step: which faces, and how amounts come and go."""

import numpy as np
import pytest

from livefuse.config import BeautifyConfig
from livefuse.face import Face, Track
from livefuse.frame import Colour
from livefuse.looks import load_look
from livefuse.pipeline.effects.beauty_amounts import AmountRamp, resolve_amounts, scale_amounts
from livefuse.pipeline.effects.beauty_step import BeautifyStep
from livefuse.pipeline.state import FrameState
from livefuse.token import Parameters, Token
from tests.faces import create_pipeline
from tests.unit.pipeline.effects.beauty import copy_frame, differ, get_scene

NATURAL = {"whiten": 0.6, "rosy": 0.4}


def create_token(values, operations=("detect", "align", "beautify")):
    return Token(request_id="t", operations=operations, parameters=Parameters(beautify=values))


def create_face(face, track_id, *, mesh=True, chosen=True):
    track = face.track
    renamed = Track(track_id, track.box, track.landmarks5, track.score, track.roll_rad)
    return Face(renamed, mesh=face.mesh if mesh else None, chosen=chosen)


def run(step, faces, values, *, dt_s=0.1, cut=False):
    """Return how far the picture is from the input, and what the step says."""
    frame, _ = get_scene()
    token = values if isinstance(values, Token) else create_token(values)
    state = FrameState(copy_frame(frame), token, dt_s, is_cut=cut, faces=faces)
    step.run(state)
    return sum(float(d.mean()) for d in differ(state.frame, frame)), state.did


def test_the_first_frame_is_made_up_at_once():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig())
    first, did = run(step, [create_face(face, 1)], NATURAL)
    assert did == "beautified 1"
    assert run(step, [create_face(face, 1)], NATURAL)[0] == pytest.approx(first, rel=0.05)


def test_nothing_asked_and_nobody_there_leave_the_picture_alone():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig())
    assert run(step, [create_face(face, 1)], {}) == (0.0, "nothing asked")
    assert run(step, [], NATURAL) == (0.0, "beautified 0")
    assert run(step, [create_face(face, 1, mesh=False)], NATURAL) == (0.0, "beautified 0")
    assert run(step, [create_face(face, 1, chosen=False)], NATURAL) == (0.0, "beautified 0")


def test_a_new_face_comes_in_over_the_ramp():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig(ramp_ms=300))
    run(step, [], NATURAL)
    amounts = [run(step, [create_face(face, 1)], NATURAL)[0] for _ in range(5)]
    assert 0 < amounts[0] < amounts[1] < amounts[2]
    assert amounts[0] == pytest.approx(amounts[2] / 3, rel=0.25)
    assert amounts[4] == pytest.approx(amounts[2], rel=0.05)


def test_a_face_that_was_away_for_a_moment_comes_back_from_where_it_was():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig(ramp_ms=300))
    whole = run(step, [create_face(face, 1)], NATURAL)[0]
    run(step, [create_face(face, 1, mesh=False)], NATURAL)
    run(step, [create_face(face, 1, mesh=False)], NATURAL)
    back = run(step, [create_face(face, 1)], NATURAL)[0]
    assert back == pytest.approx(whole * 2 / 3, rel=0.2)


def test_after_a_cut_and_after_reset_faces_are_there_at_once():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig())
    whole = run(step, [create_face(face, 1)], NATURAL)[0]
    assert run(step, [create_face(face, 2)], NATURAL)[0] < whole / 2
    assert run(step, [create_face(face, 3)], NATURAL, cut=True)[0] == pytest.approx(whole, rel=0.05)
    step.reset()
    assert run(step, [create_face(face, 4)], NATURAL)[0] == pytest.approx(whole, rel=0.05)


def test_another_look_fades_in():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig(ramp_ms=300))
    other = {"whiten": 0.0, "rosy": 0.0, "smooth": 0.0}
    faces = [create_face(face, 1)]
    amounts = [run(step, faces, NATURAL)[0], *(run(step, faces, other)[0] for _ in range(4))]
    assert amounts[0] > amounts[1] > amounts[2] > amounts[3] == 0.0


def test_without_a_ramp_everything_is_at_once():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig(ramp_ms=0))
    run(step, [], NATURAL)
    whole = run(step, [create_face(face, 1)], NATURAL)[0]
    assert whole > 0
    assert run(step, [create_face(face, 1)], {})[0] == 0.0
    assert run(step, [create_face(face, 1)], NATURAL)[0] == pytest.approx(whole, rel=0.05)


def test_a_picture_that_will_be_covered_whole_is_left_to_the_cover():
    """A job that only beautifies covers nothing, so a lost face must not make the others blink."""
    frame, face = get_scene()
    for operations, done in (
        (("detect", "align", "beautify", "blur"), "left to the whole cover"),
        (("detect", "align", "beautify"), "beautified 1"),
    ):
        token = create_token(NATURAL, operations)
        state = FrameState(copy_frame(frame), token, 0.1, faces=[create_face(face, 1)])
        state.cover_reason = "lost_face"
        BeautifyStep(BeautifyConfig()).run(state)
        assert state.did == done


def test_several_faces_are_made_up_each():
    frame, face = get_scene()
    other = create_face(face, 2)
    other.mesh = (face.mesh - face.mesh[168]) * np.float32(0.4) + np.array(
        [200, 200, 0], np.float32
    )
    step = BeautifyStep(BeautifyConfig())
    state = FrameState(copy_frame(frame), create_token({"whiten": 1.0}), 0.1,
                       faces=[create_face(face, 1), other])  # fmt: skip
    step.run(state)
    assert state.did == "beautified 2"
    changed = differ(state.frame, frame)[0]
    assert changed[:, 450:].max() > 5


def test_a_replaced_face_is_made_up_too():
    _, face = get_scene()
    replaced = create_face(face, 1)
    replaced.is_replaced = True
    assert run(BeautifyStep(BeautifyConfig()), [replaced], NATURAL)[1] == "beautified 1"


def test_kept_faces_go_with_their_tracks():
    _, face = get_scene()
    step = BeautifyStep(BeautifyConfig())
    for track_id in range(50):
        run(step, [create_face(face, track_id, mesh=False)], NATURAL)
    assert len(step._kept) == 1


def test_a_ramp_goes_evenly_and_ends_exactly():
    colour = Colour()
    one = resolve_amounts({"smooth": 0.2, "chin": -0.4, "lip_color": "#000000"}, colour)
    two = resolve_amounts({"smooth": 0.8, "chin": 0.4, "lip_color": "#ffffff"}, colour)
    ramp = AmountRamp(0.3)
    assert ramp.advance(one, 0.1) is one
    steps = [ramp.advance(two, 0.1) for _ in range(4)]
    assert [round(s["smooth"], 6) for s in steps] == [0.4, 0.6, 0.8, 0.8]
    assert [round(s["chin"], 6) for s in steps[:2]] == [-0.133333, 0.133333]
    assert steps[0].colours["lip_color"][0] == pytest.approx(16 + 219 / 3)
    assert steps[2] is two
    back = ramp.advance(one, 0.15)
    assert back["smooth"] == pytest.approx(0.5)


def test_scaling_leaves_texture_alone():
    whole = resolve_amounts({"smooth": 0.6, "texture": 0.3}, Colour())
    half = scale_amounts(whole, 0.5)
    assert (half["smooth"], half["texture"]) == (0.3, 0.3)
    assert scale_amounts(whole, 1.0) is whole
    assert resolve_amounts({"texture": 0.0}, Colour()).is_nothing


def test_in_a_real_pipeline_the_log_tells_that_faces_were_beautified():
    """Detect, align, a look and the classical enhancer: each step and its time are in the log."""
    frame, _ = get_scene()
    operations = ("detect", "align", "beautify", "enhance")
    token = create_token(load_look("natural"), operations)
    pipeline = create_pipeline(every_frame=True)
    pipeline.prepare(token)
    pipeline.warm_up(frame.width, frame.height, token)
    copy = copy_frame(frame)
    outcome = pipeline.process(copy, token)
    pipeline.close()
    assert outcome.vouched
    assert [entry.state for entry in outcome.token.log][-4:] == list(operations)
    assert [entry.reason for entry in outcome.token.log][-2].startswith("beautified")
    assert all(entry.ms > 0 for entry in outcome.token.log[-4:])
    assert differ(copy, frame)[0].max() > 5
    assert not copy.is_generated
