"""Each parameter does what it says, and nothing at 0."""

import numpy as np
import pytest

from livefuse.beauty import PARAMETERS
from livefuse.pipeline.effects.beauty_geometry import measure_face
from livefuse.pipeline.topology import BROW_LEFT, EYE_LEFT, LIPS_INNER, LIPS_OUTER
from tests.unit.pipeline.effects.beauty import (
    FULL,
    copy_frame,
    differ,
    get_close_scene,
    get_scene,
    make_up,
    measure,
    sample,
)

CHEEKS = [50, 280, 205, 425]
AMOUNTS = [name for name, row in PARAMETERS.items() if row.kind != "master"]


def get_points(face, indices):
    return face.mesh[list(indices), :2]


def get_change(values, indices, plane="y"):
    """Return the mean change of a plane at mesh points."""
    frame, face = get_close_scene()
    made = make_up(frame, face, values)
    points = get_points(face, indices)
    if plane != "y":
        points = points / 2
    return sample(getattr(made, plane), points, 1) - sample(getattr(frame, plane), points, 1)


@pytest.mark.parametrize("name", AMOUNTS)
def test_nothing_asked_is_the_input_bit_for_bit(name):
    frame, face = get_close_scene()
    row = PARAMETERS[name]
    assert (make_up(frame, face, {name: row.default}).buffer == frame.buffer).all()


@pytest.mark.parametrize("master", ["strength", "all three"])
def test_masters_at_nothing_are_the_input_bit_for_bit(master):
    frame, face = get_close_scene()
    masters = dict.fromkeys(("skin", "shape", "makeup") if " " in master else (master,), 0.0)
    assert (make_up(frame, face, FULL | masters).buffer == frame.buffer).all()


@pytest.mark.parametrize(
    ("master", "kinds"), [("skin", {"skin", "tone"}), ("shape", {"shape"}), ("makeup", {"makeup"})]
)
def test_a_master_scales_its_own_kinds_only(master, kinds):
    frame, face = get_close_scene()
    without = {n: v for n, v in FULL.items() if PARAMETERS[n].kind not in kinds}
    assert (
        make_up(frame, face, FULL | {master: 0.0}).buffer == make_up(frame, face, without).buffer
    ).all()
    halved = {n: v / 2 if PARAMETERS[n].kind in kinds and n != "texture" else v
              for n, v in FULL.items()}  # fmt: skip
    assert (
        make_up(frame, face, FULL | {master: 0.5}).buffer == make_up(frame, face, halved).buffer
    ).all()


@pytest.mark.parametrize("name", AMOUNTS)
def test_every_parameter_does_something_and_nothing_outside_its_region(name):
    frame, face = get_close_scene()
    values = {name: 0.8} if name != "texture" else {"smooth": 0.8, "texture": 0.2}
    made = make_up(frame, face, values)
    assert (made.buffer != frame.buffer).any()
    grid = measure(frame, face).grid
    outside = np.ones(frame.y.shape, bool)
    outside[grid.y : grid.y + grid.height, grid.x : grid.x + grid.width] = False
    assert (made.y[outside] == frame.y[outside]).all()
    half = outside[::2, ::2]
    assert (made.u[half] == frame.u[half]).all()
    assert (made.v[half] == frame.v[half]).all()


def test_all_together_end_softly_within_the_region():
    """(C65) What is changed ends before the region does: no rim to be seen."""
    frame, face = get_close_scene()
    made = make_up(frame, face, FULL)
    grid = measure(frame, face).grid
    rim = np.zeros(frame.y.shape, bool)
    rim[grid.y : grid.y + grid.height, grid.x : grid.x + grid.width] = True
    rim[grid.y + 4 : grid.y + grid.height - 4, grid.x + 4 : grid.x + grid.width - 4] = False
    assert differ(frame, made)[0][rim].max() <= 1


@pytest.mark.parametrize(
    ("values", "indices", "plane", "low", "high"),
    [
        ({"whiten": 0.8}, CHEEKS, "y", 8, 40),
        ({"brighten": 0.8}, CHEEKS, "y", 2, 40),
        ({"rosy": 1.0}, CHEEKS, "v", 4, 9),
        ({"warm": 1.0}, CHEEKS, "u", -9, -1),
        ({"warm": -1.0}, CHEEKS, "u", 4, 9),
        ({"warm": -1.0}, CHEEKS, "v", -5, -2),
        ({"saturation": -1.0}, CHEEKS, "v", -20, -3),
        ({"saturation": 1.0}, CHEEKS, "v", 3, 20),
        ({"blush": 1.0}, [50, 280], "v", 0.5, 10),
        ({"contour": 1.0}, [147, 376, 192, 416], "y", -12, -2),
        ({"highlight": 1.0}, [6, 197, 195], "y", 3, 15),
        ({"dark_circles": 1.0}, [230, 450], "y", 1, 26),
        ({"folds": 1.0}, [206, 426], "y", 0.3, 22),
        ({"shadow": 1.0}, [27, 257, 28, 258], "y", -25, -3),
        ({"brows": 1.0}, [105, 66, 334, 296], "y", -17, -3),
        ({"lips": 1.0, "lip_color": "#c00020"}, [17, 84, 314], "v", 6, 60),
        ({"lips": 1.0, "lip_color": "#c00020"}, CHEEKS, "v", -0.1, 0.1),
        ({"shine": 1.0}, CHEEKS, "y", 0.0, 27),
        ({"eye_bright": 1.0}, CHEEKS, "y", -0.1, 0.1),
    ],
)  # fmt: skip
def test_tone_and_make_up_go_the_right_way(values, indices, plane, low, high):
    assert low <= get_change(values, indices, plane) <= high


def draw_mask(frame, polygons):
    import cv2

    mask = np.zeros(frame.y.shape, np.uint8)
    for points in polygons:
        cv2.fillPoly(mask, [np.rint(points).astype(np.int32)], 255)
    return mask > 0


def test_lipstick_stays_on_the_lips():
    frame, face = get_close_scene()
    made = make_up(frame, face, {"lips": 1.0})
    lips = draw_mask(frame, [get_points(face, LIPS_OUTER)])
    import cv2

    near = cv2.dilate(lips.astype(np.uint8), np.ones((13, 13), np.uint8)) > 0
    _, _, v = differ(frame, made)
    assert v[~near[::2, ::2]].max() == 0
    ring = lips & ~draw_mask(frame, [get_points(face, LIPS_INNER)])
    assert v[ring[::2, ::2]].mean() > 4
    teeth = (frame.y > 150) & draw_mask(frame, [get_points(face, LIPS_INNER)])
    assert v[teeth[::2, ::2]].mean() < 0.35 * v[ring[::2, ::2]].mean()


def test_teeth_get_whiter_and_a_closed_mouth_does_not():
    frame, face = get_close_scene()
    inner = draw_mask(frame, [get_points(face, LIPS_INNER)])
    teeth = (frame.y > 150) & inner
    made = make_up(frame, face, {"teeth": 1.0})
    assert made.y[teeth].mean() - frame.y[teeth].mean() > 4
    toward_grey = np.abs(made.u.astype(int) - 129)[teeth[::2, ::2]].mean()
    assert toward_grey < np.abs(frame.u.astype(int) - 129)[teeth[::2, ::2]].mean() - 2
    shut = face.mesh.copy()
    shut[LIPS_INNER[11:], 1] = shut[LIPS_INNER[9:0:-1], 1] + 0.5
    face = type(face)(face.track, mesh=shut)
    assert (make_up(frame, face, {"teeth": 1.0}).buffer == frame.buffer).all()


def test_the_white_of_the_eyes_gains_and_the_iris_keeps_its_dark():
    frame, face = get_close_scene()
    eye = draw_mask(frame, [get_points(face, EYE_LEFT)])
    made = make_up(frame, face, {"eye_bright": 1.0})
    change = made.y.astype(int) - frame.y
    bright, dark = eye & (frame.y > 120), eye & (frame.y < 60)
    assert change[bright].mean() > 8
    assert change[dark].mean() < 1
    assert np.abs(change)[~draw_mask(frame, [
        get_points(face, range(468))[[10, 234, 152, 454]],
    ])].max() == 0  # fmt: skip


def test_the_liner_lies_on_the_upper_lid_only():
    frame, face = get_close_scene()
    made = make_up(frame, face, {"liner": 1.0})
    change = made.y.astype(int) - frame.y
    assert change.max() <= 0
    assert (made.u == frame.u).all()
    above = get_points(face, [160, 159, 387, 386]) - np.array([0, 1.5])
    below = get_points(face, [145, 153, 374, 380]) + np.array([0, 3])
    assert sample(made.y, above, 1) < sample(frame.y, above, 1) - 4
    assert sample(made.y, below, 0) == sample(frame.y, below, 0)


def test_smoothing_takes_blotches_and_keeps_pores():
    """Bounds of facts-beauty section 3: .91 of the pore band, .66 of the blemish band stay."""
    import cv2

    frame, face = get_close_scene()
    noise = np.random.default_rng(5)
    grainy = copy_frame(frame)
    fine = noise.normal(0, 3, frame.y.shape)
    broad = cv2.GaussianBlur(noise.normal(0, 60, frame.y.shape), (0, 0), 2.6)
    grainy.y[:] = np.clip(frame.y + fine + broad, 0, 255).astype(np.uint8)
    made = make_up(grainy, face, {"smooth": 1.0})

    def split(picture):
        picture = picture.astype(np.float32)
        mm = measure(frame, face).mm
        pores = picture - cv2.GaussianBlur(picture, (0, 0), 0.35 * mm)
        spots = cv2.GaussianBlur(picture, (0, 0), 0.5 * mm)
        spots = spots - cv2.GaussianBlur(picture, (0, 0), 3 * mm)
        places = get_points(face, [*CHEEKS, 151, 9]).astype(int)
        return [
            np.mean([band[y - 9 : y + 9, x - 9 : x + 9].std() for x, y in places])
            for band in (pores, spots)
        ]

    (pores, spots), (kept_pores, kept_spots) = split(grainy.y), split(made.y)
    assert kept_pores / pores > 0.88
    assert kept_spots / spots < 0.8
    waxen = make_up(grainy, face, {"smooth": 1.0, "texture": 0.0})
    assert split(waxen.y)[0] < 0.75 * pores


def find_width(frame, face, values, row):
    """Return the change of the face's width at the height of a mesh point, measured by edges."""
    from livefuse.pipeline.effects.beauty_amounts import resolve_amounts
    from livefuse.pipeline.effects.beauty_shape import Axis, compute_field, create_basis

    geometry = measure(frame, face)
    basis = create_basis(geometry, resolve_amounts(values, frame.colour))
    assert basis is not None
    left, right = geometry.coarse[row[0]], geometry.coarse[row[1]]
    one = np.ones(1, np.float32)
    moves = [
        compute_field(basis, Axis(p[:1], one), Axis(p[1:], one))[:, 0, 0] for p in (left, right)
    ]
    return moves, geometry


@pytest.mark.parametrize(
    ("values", "pair", "expected"),
    [
        ({"slim": 1.0}, (172, 397), (0.085, -0.010)),
        ({"narrow": 1.0}, (93, 323), (0.07, 0.0)),
        ({"cheekbone": 1.0}, (227, 447), (0.06, 0.0)),
        ({"chin": 1.0}, (152, 152), (0.0, 0.09)),
        ({"chin": -1.0}, (152, 152), (0.0, -0.09)),
        ({"small": 1.0}, (152, 152), (0.0, -0.10)),
        ({"forehead": 1.0}, (10, 10), (0.0, -0.11)),
        ({"nose": 1.0}, (129, 358), (0.045, 0.0)),
        ({"nose_len": 1.0}, (2, 2), (0.0, 0.05)),
        ({"smile": 1.0}, (61, 291), (-0.045, -0.085)),
        ({"plump": 1.0}, (0, 0), (0.0, -0.035)),
    ],
)
def test_a_shape_moves_its_points_as_asked(values, pair, expected):
    frame, face = get_close_scene()
    (left, right), geometry = find_width(frame, face, values, pair)
    eyes = geometry.eyes_px / (2 * geometry.grid.k)
    axes = np.stack([geometry.across, geometry.down])
    left, right = axes @ left / eyes, axes @ right / eyes
    halves = geometry.left_half**1.5, geometry.right_half**1.5
    assert left[0] == pytest.approx(expected[0] * halves[0], abs=0.012)
    assert right[0] == pytest.approx(-expected[0] * halves[1], abs=0.012)
    for move, half in ((left, halves[0]), (right, halves[1])):
        scale = 1.0 if pair[0] == pair[1] else half
        assert move[1] == pytest.approx(expected[1] * scale, abs=0.012)


def test_slim_and_narrow_together_do_not_add_up_without_end():
    frame, face = get_close_scene()
    values = {"slim": 1.0, "narrow": 1.0, "cheekbone": 1.0}
    (left, right), geometry = find_width(frame, face, values, (132, 361))
    assert abs(float(left @ geometry.across)) < 0.115 * geometry.eyes_px / (2 * geometry.grid.k)
    assert abs(float(right @ geometry.across)) < 0.115 * geometry.eyes_px / (2 * geometry.grid.k)


def test_the_warp_moves_pixels_as_the_field_says():
    """A bright dot on the jaw goes where slim sends it, within half a px."""
    import cv2

    frame, face = get_close_scene()
    dotted = copy_frame(frame)
    dotted.y[:] = 60
    x, y = face.mesh[172, :2]
    cv2.circle(dotted.y, (round(float(x)), round(float(y))), 3, 220, -1)
    made = make_up(dotted, face, {"slim": 1.0})
    rows, columns = np.nonzero(made.y > 120)
    (move, _), geometry = find_width(frame, face, {"slim": 1.0}, (172, 397))
    scale = 2 * geometry.grid.k
    assert columns.mean() == pytest.approx(round(float(x)) + float(move[0]) * scale, abs=1.0)
    assert rows.mean() == pytest.approx(round(float(y)) + float(move[1]) * scale, abs=1.0)


def test_larger_eyes_are_larger_and_tilt_lifts_the_outer_corners():
    frame, face = get_close_scene()
    moves, geometry = find_width(frame, face, {"eyes": 1.0}, (33, 263))
    assert float(moves[0] @ geometry.across) < -0.3
    assert float(moves[1] @ geometry.across) > 0.3
    moves, geometry = find_width(frame, face, {"eye_tilt": 1.0}, (33, 263))
    assert float(moves[0] @ geometry.down) < -0.3
    assert float(moves[1] @ geometry.down) < -0.3
    moves, geometry = find_width(frame, face, {"mouth": 1.0}, (61, 291))
    assert float(moves[0] @ geometry.across) < -0.3


def test_contrast_clarity_and_sharpen_raise_contrast():
    import cv2

    frame, face = get_close_scene()
    eye = get_points(face, BROW_LEFT).mean(axis=0).astype(int)
    box = slice(eye[1] - 20, eye[1] + 40), slice(eye[0] - 30, eye[0] + 30)

    def energy(picture):
        return float(np.abs(cv2.Laplacian(picture[box], cv2.CV_32F)).mean())

    assert energy(make_up(frame, face, {"sharpen": 1.0}).y) > 1.05 * energy(frame.y)
    assert make_up(frame, face, {"clarity": 1.0}).y[box].std() > 1.01 * frame.y[box].std()
    light = [10, 151, *CHEEKS, 172, 397]
    made = make_up(frame, face, {"contrast": 1.0})
    before = [sample(frame.y, get_points(face, [i])) for i in light]
    after = [sample(made.y, get_points(face, [i])) for i in light]
    assert np.std(after) > 1.1 * np.std(before)


def test_denoise_takes_grain_and_keeps_the_jaw():
    frame, face = get_close_scene()
    noise = np.random.default_rng(3)
    grainy = copy_frame(frame)
    for plane in (grainy.y, grainy.u, grainy.v):
        plane[:] = np.clip(plane + noise.normal(0, 5, plane.shape), 0, 255).astype(np.uint8)
    made = make_up(grainy, face, {"denoise": 0.6})
    x, y = face.mesh[50, :2].astype(int)
    for plane, k in (("y", 1), ("u", 2), ("v", 2)):
        box = slice(y // k - 8 // k, y // k + 8 // k), slice(x // k - 8 // k, x // k + 8 // k)
        assert getattr(made, plane)[box].std() < 0.75 * getattr(grainy, plane)[box].std()
    points = get_points(face, [172, 397, 136, 365])
    assert sample(np.abs(made.y.astype(int) - grainy.y), points) < 1.5


def test_the_same_look_at_two_sizes_is_the_same_look():
    """The unit goes with the face: the mean change at the cheeks hardly depends on its size."""
    values = {"whiten": 0.5, "rosy": 0.5, "blush": 0.5, "highlight": 0.5}
    changes = []
    for face_px in (125, 250):
        frame, face = get_scene(face_px)
        made = make_up(frame, face, values)
        points = get_points(face, CHEEKS)
        changes.append(sample(made.y, points) - sample(frame.y, points))
    assert changes[0] == pytest.approx(changes[1], abs=2.0)


def test_measure_face_keeps_its_scale_until_the_face_has_outgrown_it():
    frame, face = get_close_scene()
    size = (frame.width, frame.height)
    middle = face.mesh[168]
    before = measure(frame, face)
    assert before.grid.k == 2
    edge = 54 * 2 * 2**0.5 / before.eyes_px
    for scale, k, fresh in ((0.97 * edge, 2, 2), (1.04 * edge, 2, 4), (1.1 * edge, 4, 4)):
        mesh = (middle + (face.mesh - middle) * scale).astype(np.float32)
        scales = [measure_face(mesh, size, kept) for kept in (before, None)]
        assert [one and one.grid.k for one in scales] == [k, fresh]
