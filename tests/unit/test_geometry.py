import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.face import Box
from livefuse.geometry import (
    Ellipse,
    Similarity,
    apply_similarity,
    clip_box,
    compute_iou,
    compute_roll,
    create_box,
    create_matrix,
    create_similarity,
    fit_ellipse,
    fit_similarity,
    get_bounds,
    invert_similarity,
    measure_radius,
    scale_ellipse,
)

FACE = np.array([[-30, -20], [30, -20], [0, 5], [-22, 35], [22, 35]], np.float32)
near = st.floats(-500, 500)
angles = st.floats(-3.1, 3.1)
scales = st.floats(0.05, 20)
transforms = st.builds(create_similarity, scales, angles, near, near)
ellipses = st.builds(Ellipse, near, near, st.floats(2, 200), st.floats(2, 200), angles)


@given(transforms)
def test_a_fit_finds_the_transform_that_moved_the_points(transform):
    found = fit_similarity(FACE, apply_similarity(transform, FACE))
    assert np.allclose(found, transform, atol=2e-3 * max(1.0, transform.scale))


@given(transforms, st.integers(0, 2**31))
def test_a_fit_agrees_with_linear_least_squares(transform, seed):
    noise = np.random.default_rng(seed).normal(0, 2, FACE.shape)
    target = apply_similarity(transform, FACE) + noise
    x, y = FACE.T
    one, zero = np.ones(5), np.zeros(5)
    rows = np.concatenate([np.stack([x, -y, one, zero], 1), np.stack([y, x, zero, one], 1)])
    best = np.linalg.lstsq(rows.astype(np.float64), target.T.reshape(-1), rcond=None)[0]
    assert np.allclose(fit_similarity(FACE, target), best, atol=1e-2)


def test_a_fit_lets_weights_silence_an_outlier():
    target = apply_similarity(Similarity(tx=4.0), FACE)
    target[0] += 90
    weights = np.array([0.0, 1, 1, 1, 1])
    assert np.allclose(fit_similarity(FACE, target, weights), (1, 0, 4, 0), atol=1e-4)


@pytest.mark.parametrize("points", [FACE[:1], np.ones((5, 2), np.float32)])
def test_a_fit_refuses_points_that_tell_nothing(points):
    with pytest.raises(ValueError, match=r"two points|coincide"):
        fit_similarity(points, points)


@given(transforms)
def test_the_inverse_brings_points_back(transform):
    back = apply_similarity(invert_similarity(transform), apply_similarity(transform, FACE))
    assert np.abs(back - FACE).max() < 1.0


def test_a_transform_of_scale_zero_has_no_inverse():
    with pytest.raises(ValueError, match="scale zero"):
        invert_similarity(Similarity(0.0, 0.0, 1.0, 1.0))


@given(transforms)
def test_matrix_scale_and_angle_are_those_of_the_transform(transform):
    matrix = create_matrix(transform)
    moved = FACE @ matrix[:, :2].T + matrix[:, 2]
    assert np.allclose(moved, apply_similarity(transform, FACE), rtol=1e-4, atol=1e-2)
    assert math.isclose(transform.scale, math.sqrt(np.linalg.det(matrix[:, :2])), rel_tol=1e-6)


def test_iou_of_boxes():
    box = Box(0, 0, 10, 10)
    assert compute_iou(box, box) == 1.0
    assert compute_iou(box, Box(5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert compute_iou(box, Box(10, 0, 20, 10)) == 0.0
    assert compute_iou(box, Box(4, 4, 4, 4)) == 0.0


def test_a_clipped_box_stays_in_the_picture():
    assert clip_box(Box(-5, -5, 50, 20), 40, 30) == Box(0, 0, 40, 20)
    away = clip_box(Box(60, 60, 70, 70), 40, 30)
    assert (away.width, away.height) == (0, 0)
    assert create_box(10, 20, 4, 6) == Box(8, 17, 12, 23)


@given(st.floats(-1.5, 1.5))
def test_roll_is_the_angle_by_which_the_face_was_turned(angle):
    turned = apply_similarity(create_similarity(2.0, angle, 300, 200), FACE)
    assert compute_roll(turned) == pytest.approx(angle, abs=1e-4)


def test_roll_of_a_profile_is_read_from_eyes_to_mouth():
    profile = FACE * np.array([0.05, 1.0], np.float32)
    turned = apply_similarity(create_similarity(1.0, 0.4, 0, 0), profile)
    assert compute_roll(turned) == pytest.approx(0.4, abs=1e-3)


@given(ellipses)
def test_bounds_touch_the_ellipse_on_all_sides(ellipse):
    bounds = get_bounds(ellipse)
    turns = np.linspace(0, 2 * math.pi, 721)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    turn = create_similarity(1.0, ellipse.roll_rad, ellipse.x, ellipse.y)
    rim = apply_similarity(turn, circle * (ellipse.half_width, ellipse.half_height))
    slack = 0.01 * max(ellipse.half_width, ellipse.half_height) + 0.01
    assert np.abs(rim.min(axis=0) - (bounds.x0, bounds.y0)).max() < slack
    assert np.abs(rim.max(axis=0) - (bounds.x1, bounds.y1)).max() < slack
    assert measure_radius(ellipse, rim) == pytest.approx(1.0, abs=0.02)


@given(st.floats(-3.0, 3.0), st.floats(20, 200))
def test_an_ordinary_face_is_found_again_from_its_box_and_roll(roll, half_width):
    face = Ellipse(300, 200, half_width, 1.3 * half_width, roll)
    found = fit_ellipse(get_bounds(face), roll)
    assert found.half_width == pytest.approx(half_width, rel=0.05)
    assert found.half_height == pytest.approx(1.3 * half_width, rel=0.05)


def test_an_upright_box_gives_its_inscribed_ellipse():
    found = fit_ellipse(Box(10, 20, 50, 90), 0.0)
    assert np.allclose(found, (30, 55, 20, 35, 0))
    assert np.allclose(scale_ellipse(found, 2, 0.5), (30, 55, 40, 17.5, 0))
