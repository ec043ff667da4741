"""The classical enhancer: clearer, calm, and nothing outside the face."""

import cv2
import numpy as np
import pytest

from livefuse.face import Face
from livefuse.pipeline.effects.enhance_classical import ClassicalEnhancer, create_classical_enhancer
from livefuse.pipeline.enhance_step import ENHANCERS
from livefuse.pipeline.state import FrameState
from livefuse.token import Token
from tests.unit.pipeline.effects.beauty import copy_frame, differ, get_scene, measure, move_face

TOKEN = Token(request_id="t", operations=("detect", "align", "enhance"))


def enhance(frame, face, amount, enhancer=None):
    """Return a copy of `frame` with `face` enhanced, and whether that was done."""
    state = FrameState(copy_frame(frame), TOKEN, faces=[face])
    done = (enhancer or ClassicalEnhancer()).enhance(state, face, amount)
    return state.frame, done


def measure_energy(frame, points, radius=14):
    values = []
    for x, y in np.rint(points).astype(int):
        part = frame.y[y - radius : y + radius, x - radius : x + radius]
        values.append(np.abs(cv2.Laplacian(part, cv2.CV_32F)).mean())
    return float(np.mean(values))


def test_it_is_the_family_called_classical():
    assert ENHANCERS["classical"] is create_classical_enhancer


def test_nothing_asked_is_the_input_bit_for_bit():
    frame, face = get_scene()
    made, done = enhance(frame, face, 0.0)
    assert not done
    assert (made.buffer == frame.buffer).all()


def test_features_get_clearer_with_the_amount_and_skin_less_so():
    frame, face = get_scene()
    features = face.mesh[[33, 263, 105, 334, 61, 291], :2]
    skin = face.mesh[[50, 280, 151], :2]
    gains = []
    for amount in (0.25, 0.5, 1.0):
        made, done = enhance(frame, face, amount)
        assert done
        gains.append(measure_energy(made, features) / measure_energy(frame, features))
    assert 1.05 < gains[0] < gains[1] < gains[2]
    made, _ = enhance(frame, face, 0.5)
    change = np.abs(made.y.astype(int) - frame.y)
    at = [np.rint(p).astype(int) for p in skin]
    assert np.mean([change[y - 8 : y + 8, x - 8 : x + 8].mean() for x, y in at]) < 3


def test_colour_is_untouched_and_so_is_what_lies_outside_the_face():
    frame, face = get_scene()
    made, _ = enhance(frame, face, 1.0)
    y, u, v = differ(made, frame)
    assert max(u.max(), v.max()) == 0
    hull = cv2.convexHull(np.rint(face.mesh[:468, :2]).astype(np.int32))
    inside = np.zeros(frame.y.shape, np.uint8)
    cv2.fillPoly(inside, [hull], 1)
    far = cv2.dilate(inside, np.ones((61, 61), np.uint8)) == 0
    assert y[far].max() == 0


def test_a_face_too_small_to_be_enhanced_is_left_alone():
    frame, face = get_scene()
    small = move_face(face, lambda mesh: mesh.__imul__(0.2))
    assert measure(frame, small).eyes_px < 25
    made, done = enhance(frame, small, 1.0)
    assert not done
    assert (made.buffer == frame.buffer).all()


@pytest.mark.parametrize("kind", ["no mesh", "nan", "outside"])
def test_a_face_that_cannot_be_used_is_left_alone(kind):
    frame, face = get_scene()
    changes = {
        "no mesh": lambda: Face(face.track),
        "nan": lambda: move_face(face, lambda m: m.__setitem__((3, 1), np.nan)),
        "outside": lambda: move_face(face, lambda m: m.__iadd__([0, 9000, 0])),
    }
    made, done = enhance(frame, changes[kind](), 1.0)
    assert not done
    assert (made.buffer == frame.buffer).all()


def test_it_is_still_on_a_still_face():
    """(C62) Two frames that are alike come out alike, moved masks or not."""
    frame, face = get_scene()
    enhancer = ClassicalEnhancer()
    first, _ = enhance(frame, face, 1.0, enhancer)
    second, _ = enhance(frame, face, 1.0, enhancer)
    assert differ(first, second)[0].max() <= 1


def test_faces_that_left_are_forgotten():
    frame, face = get_scene()
    enhancer = ClassicalEnhancer()
    for track_id in range(20):
        track = type(face.track)(track_id, face.track.box, face.track.landmarks5, 1.0, 0.0)
        enhance(frame, Face(track, mesh=face.mesh), 0.5, enhancer)
    assert len(enhancer._sitters) <= 2
    enhancer.reset()
    assert not enhancer._sitters


def test_noise_is_not_enhanced_with_the_face():
    """Coring: grain of two grey levels gains nothing in the finest band."""
    frame, face = get_scene()
    flat = copy_frame(frame)
    noise = np.random.default_rng(2)
    flat.y[:] = np.clip(140 + noise.normal(0, 1.2, frame.y.shape), 0, 255).astype(np.uint8)
    made, _ = enhance(flat, face, 1.0)
    x, y = face.mesh[50, :2].astype(int)
    box = slice(y - 15, y + 15), slice(x - 15, x + 15)
    assert made.y[box].std() < 1.35 * flat.y[box].std()
