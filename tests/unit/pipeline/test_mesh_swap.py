"""The embedded swap on the astronaut's face: what changes, what must not, and when it declines."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from livefuse.errors import ConfigError
from livefuse.face import Box, SourceFace
from livefuse.frame import Colour
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.mesh_lids import draw_closed_lids, measure_eyes
from livefuse.pipeline.effects.mesh_light import LightMeter
from livefuse.pipeline.effects.mesh_raster import create_view
from livefuse.pipeline.effects.mesh_swap import MeshSwapper
from livefuse.pipeline.topology import EYE_LEFT, LIPS_OUTER, OVAL
from tests.faces import create_frame_by_bgr, read_bgr
from tests.sheets._people import create_other_person, find_mesh, place_photo, relight
from tests.sheets.swap import create_face, create_state, create_swapper, swap_picture

SIZE = (640, 560)


@pytest.fixture(scope="module")
def swapper():
    return create_swapper()


@pytest.fixture(scope="module")
def wearer():
    bgr = place_photo(220, SIZE)
    return bgr, find_mesh(bgr)


def swap_once(swapper, bgr, mesh, *, colour=None, blend_ratio=1.0):
    """Return the frame before (buffer) and after, and what the swapper said."""
    frame = create_frame_by_bgr(bgr)
    frame.colour = colour or Colour("bt601")
    before = frame.buffer.copy()
    face = create_face(mesh)
    return before, frame, swapper.swap(create_state(frame, [face], blend_ratio), face)


def draw_oval(mesh, shape, grow_px=0):
    mask = np.zeros(shape, np.uint8)
    cv2.fillPoly(mask, [cv2.convexHull(np.rint(mesh[OVAL, :2]).astype(np.int32))], 1)
    return cv2.dilate(mask, np.ones((2 * grow_px + 1,) * 2, np.uint8)) if grow_px else mask


def test_nothing_outside_the_face_changes(swapper, wearer):
    bgr, mesh = wearer
    before, frame, done = swap_once(swapper, bgr, mesh)
    assert done
    outside = draw_oval(mesh, frame.y.shape, 3) == 0
    y = before[: frame.height]
    assert np.array_equal(frame.y[outside], y[outside])
    half = cv2.resize(outside.astype(np.uint8), frame.u.shape[::-1], interpolation=cv2.INTER_AREA)
    chroma = before.reshape(-1)[frame.height * frame.width :].reshape(2, *frame.u.shape)
    assert np.array_equal(frame.u[half > 0], chroma[0][half > 0])
    assert np.array_equal(frame.v[half > 0], chroma[1][half > 0])
    assert np.abs(frame.y.astype(int) - y)[~outside].max() > 20


def test_blend_ratio_is_a_share_and_zero_is_the_input(swapper, wearer):
    bgr, mesh = wearer
    before, frame, done = swap_once(swapper, bgr, mesh, blend_ratio=0.0)
    assert done
    assert np.array_equal(frame.buffer, before)
    changes = []
    for ratio in (0.3, 1.0):
        before, frame, _ = swap_once(create_swapper(grain=False), bgr, mesh, blend_ratio=ratio)
        changes.append(np.abs(frame.y.astype(float) - before[: frame.height]).sum())
    assert changes[0] == pytest.approx(0.3 * changes[1], rel=0.15)


def test_the_sources_features_are_there_and_the_wearers_eyes_stay(swapper, wearer):
    bgr, mesh = wearer
    after = swap_picture(swapper, bgr, mesh, frames=3)
    lips = np.zeros(bgr.shape[:2], np.uint8)
    cv2.fillPoly(lips, [np.rint(mesh[LIPS_OUTER[10:], :2]).astype(np.int32)], 1)
    x, y = np.rint(mesh[17, :2] - (0, 6)).astype(int)
    red = after[y - 1 : y + 2, x - 1 : x + 2].astype(float).mean(axis=(0, 1))
    bare = bgr[y - 1 : y + 2, x - 1 : x + 2].astype(float).mean(axis=(0, 1))
    assert red[2] / red[1] > 1.25 * bare[2] / bare[1]
    x, y = np.rint(mesh[468, :2]).astype(int)
    own = read_bgr(create_frame_by_bgr(bgr))
    assert (
        np.abs(
            after[y - 2 : y + 3, x - 2 : x + 3].astype(int) - own[y - 2 : y + 3, x - 2 : x + 3]
        ).max()
        <= 3
    )


@pytest.mark.parametrize("light", ["plain", "side", "dim", "cold", "mono"])
def test_the_rim_shows_no_step(swapper, wearer, light):
    """(C65) Lab distance across the rim grows by 2 at most; the untouched face has 5 to 14."""
    bgr, mesh = wearer
    bgr = relight(bgr, light)
    after = swap_picture(create_swapper(), bgr, mesh, frames=8)
    before = measure_rim_steps(bgr, mesh)
    steps = measure_rim_steps(after, mesh)
    assert np.median(steps) < np.median(before) + 2.0
    assert np.percentile(steps, 90) < np.percentile(before, 90) + 4.0


def measure_rim_steps(bgr, mesh):
    """Return the CIELAB distance between 0.80 and 0.94 of the oval's radius, per oval point."""
    lab = cv2.cvtColor(bgr.astype(np.float32) / 255, cv2.COLOR_BGR2Lab)
    lab = cv2.GaussianBlur(lab, (0, 0), 2.0)
    centre = mesh[:468, :2].mean(axis=0)
    steps = []
    for point in mesh[OVAL, :2]:
        (x0, y0), (x1, y1) = (
            np.rint(centre + (point - centre) * r).astype(int) for r in (0.8, 0.94)
        )
        steps.append(float(np.linalg.norm(lab[y0, x0] - lab[y1, x1])))
    return np.array(steps)


def test_a_grey_picture_stays_grey(wearer):
    bgr, mesh = wearer
    frame = create_frame_by_bgr(swap_picture(create_swapper(), relight(bgr, "mono"), mesh))
    shown = draw_oval(mesh, frame.u.shape) * 0
    cv2.fillPoly(shown, [np.rint(mesh[OVAL, :2] / 2).astype(np.int32)], 1)
    assert np.abs(frame.u[shown > 0].astype(int) - 128).max() <= 3
    assert np.abs(frame.v[shown > 0].astype(int) - 128).max() <= 3


def test_a_still_face_does_not_flicker(wearer):
    """(C62, C63) Noise and jitter as a camera and the mesh network have them: the mean holds."""
    bgr, mesh = wearer
    swapper, random = create_swapper(), np.random.default_rng(3)
    x0, y0 = mesh[:, :2].min(axis=0).astype(int) + 40
    x1, y1 = mesh[:, :2].max(axis=0).astype(int) - 40
    means, keys = [], set()
    for index in range(45):
        noisy = np.clip(bgr + random.normal(0, 2, bgr.shape), 0, 255).astype(np.uint8)
        moved = mesh + random.normal(0, 0.08, mesh.shape).astype(np.float32)
        _, frame, done = swap_once(swapper, noisy, moved)
        assert done
        if index >= 20:
            means.append(read_bgr(frame)[y0:y1, x0:x1].mean(axis=(0, 1)))
            keys.add(swapper._worn[1].match.key)
    assert np.std(means, axis=0).max() < 0.15
    assert len(keys) == 1


def test_who_wears_it_looks_more_like_the_source(wearer):
    from livefuse.config import Config
    from livefuse.pipeline.analysis.portrait import analyse_portrait
    from tests.faces import share_sessions

    def embed(bgr):
        rgb = np.ascontiguousarray(bgr[:, :, ::-1])
        return analyse_portrait(rgb, share_sessions(), Config()).embedding

    bgr, mesh = wearer
    source, before = embed(create_other_person()[0]), embed(bgr)
    after = embed(swap_picture(create_swapper(), bgr, mesh))
    assert np.linalg.norm(after - source) < 0.85 * np.linalg.norm(before - source)


def test_the_light_stays_the_wearers(wearer):
    """The same source on a dim face is as dim as the face was."""
    bgr, mesh = wearer
    for light in ("dim", "side", "cold"):
        lit = relight(bgr, light)
        after = swap_picture(create_swapper(), lit, mesh, frames=8)
        for point in (50, 280, 205, 425):
            x, y = np.rint(mesh[point, :2]).astype(int)
            part = np.s_[y - 9 : y + 10, x - 9 : x + 10]
            difference = after[part].astype(float).mean(axis=(0, 1)) - lit[part].mean(axis=(0, 1))
            assert np.abs(difference).max() < 14, (light, point)


@pytest.mark.parametrize("colour", [Colour("bt709"), Colour("bt601", full_range=True)])
def test_other_colours_of_planes(wearer, colour):
    bgr, mesh = wearer
    before, frame, done = swap_once(create_swapper(grain=False), bgr, mesh, colour=colour)
    assert done
    x, y = np.rint(mesh[50, :2]).astype(int)
    was = before[: frame.height][y - 9 : y + 10, x - 9 : x + 10].mean()
    assert frame.y[y - 9 : y + 10, x - 9 : x + 10].mean() == pytest.approx(was, abs=12)


def turn(mesh, degrees):
    """Return `mesh` turned to the side about its own middle."""
    angle, middle = np.radians(degrees), mesh[:468].mean(axis=0)
    x, z = mesh[:, 0] - middle[0], mesh[:, 2] - middle[2]
    turned = mesh.copy()
    turned[:, 0] = middle[0] + x * np.cos(angle) + z * np.sin(angle)
    turned[:, 2] = middle[2] + z * np.cos(angle) - x * np.sin(angle)
    return turned


def _spoil(mesh, kind):
    spoilt = mesh.copy()
    if kind == "nan":
        spoilt[4, 0] = np.nan
    elif kind == "tiny":
        spoilt *= 0.12
    elif kind == "outside":
        spoilt[:, 0] += 2000
    elif kind == "profile":
        spoilt = turn(mesh, 80)
    elif kind == "backwards":
        spoilt = turn(mesh, 180)
    return None if kind == "no mesh" else spoilt


@pytest.mark.parametrize("kind", ["no mesh", "nan", "tiny", "outside", "profile", "backwards"])
def test_what_cannot_be_swapped_is_declined_and_left_alone(swapper, wearer, kind):
    bgr, mesh = wearer
    frame = create_frame_by_bgr(bgr)
    before = frame.buffer.copy()
    face = create_face(mesh)
    face.mesh = _spoil(mesh, kind)
    assert not swapper.swap(create_state(frame, [face]), face)
    assert np.array_equal(frame.buffer, before)


def test_a_photo_is_made_ready_and_worn(wearer):
    bgr, mesh = wearer
    swapper = create_swapper(create_other_person())
    _, _, done = swap_once(swapper, bgr, mesh)
    assert done


def test_without_a_source_it_declines(wearer):
    bgr, mesh = wearer
    bare = MeshSwapper(lambda _: mesh, InlineExecutor())
    _, _, done = swap_once(bare, bgr, mesh)
    assert not done


def test_a_source_without_a_usable_face_is_refused_in_words(wearer):
    bgr, mesh = wearer
    swapper = MeshSwapper(lambda _: mesh * 0.05, InlineExecutor())
    with pytest.raises(ConfigError, match="too small, too dark or cut off"):
        swapper.prepare(SourceFace("x", np.ascontiguousarray(bgr[:, :, ::-1]), "0" * 64))


@pytest.mark.parametrize(("dx", "dy"), [(-250, 0), (260, 40), (0, -240), (0, 260)])
def test_a_face_half_outside_the_frame_is_swapped_where_it_is(swapper, wearer, dx, dy):
    bgr, mesh = wearer
    moved = cv2.warpAffine(bgr, np.array([[1.0, 0, dx], [0, 1.0, dy]]), SIZE)
    shifted = mesh + np.array([dx, dy, 0], np.float32)
    before, frame, done = swap_once(swapper, moved, shifted)
    if done:
        assert np.abs(frame.y.astype(int) - before[: frame.height]).max() > 10
    else:
        assert np.array_equal(frame.buffer, before)


def test_a_mesh_of_468_points_will_do(swapper, wearer):
    bgr, mesh = wearer
    _, _, done = swap_once(swapper, bgr, mesh[:468])
    assert done


def test_frames_of_many_sizes_and_faces_pass_through_one_swapper(swapper):
    for face_px, size in ((200, (640, 480)), (60, (320, 240)), (330, (960, 720))):
        bgr = place_photo(face_px, size)
        _, _, done = swap_once(swapper, bgr, find_mesh(bgr))
        assert done, face_px


def test_what_is_kept_of_a_face_goes_with_its_track(wearer):
    bgr, mesh = wearer
    swapper = create_swapper()
    frame = create_frame_by_bgr(bgr)
    frame.colour = Colour("bt601")
    faces = [create_face(mesh, 1), create_face(mesh + np.float32(2.0), 2)]
    state = create_state(frame, faces)
    assert all(swapper.swap(state, face) for face in faces)
    assert swapper._worn.keys() == {1, 2}
    assert swapper.swap(create_state(frame, faces[1:]), faces[1])
    assert swapper._worn.keys() == {2}
    swapper.reset()
    assert not swapper._worn


def test_a_closed_lid_is_the_wearers(wearer):
    _, mesh = wearer
    view = create_view(mesh, *SIZE)
    assert view is not None
    own = measure_eyes(mesh)
    assert 0.2 < own[0] < 0.6
    assert draw_closed_lids(view, own) is None
    # Against a source with eyes three times as open these are closed.
    lids = draw_closed_lids(view, (3 * own[0], own[1]))
    assert lids is not None
    scale = np.array(view.scale)
    x, y = ((view.points[EYE_LEFT, :2].mean(axis=0) + 0.5) * scale).astype(int)
    assert lids[y, x] > 0.95
    x, y = ((view.points[280, :2] + 0.5) * scale).astype(int)
    assert lids[y, x] < 0.01


def test_a_fringe_stays_in_front(wearer):
    bgr, mesh = wearer
    dark = bgr.copy()
    x0, y0 = mesh[[21, 9], 0].min().astype(int), mesh[10, 1].astype(int) - 10
    cv2.rectangle(dark, (x0, y0), (int(mesh[251, 0]), int(mesh[151, 1]) + 12), (12, 14, 20), -1)
    after = swap_picture(create_swapper(), dark, mesh, frames=4)
    own = read_bgr(create_frame_by_bgr(dark))
    x, y = np.rint(mesh[151, :2]).astype(int)
    difference = np.abs(
        after[y - 6 : y + 4, x - 30 : x + 31].astype(int) - own[y - 6 : y + 4, x - 30 : x + 31]
    )
    assert difference.mean() < 6


def test_sunglasses_stay_on(wearer):
    bgr, mesh = wearer
    dark = bgr.copy()
    for ring in (
        (46, 53, 52, 65, 55, 193, 245, 128, 121, 120, 119, 118, 117, 111, 35),
        (276, 283, 282, 295, 285, 417, 465, 357, 350, 349, 348, 347, 346, 340, 265),
    ):
        cv2.fillPoly(
            dark, [cv2.convexHull(np.rint(mesh[list(ring), :2]).astype(np.int32))], (25, 22, 20)
        )
    after = swap_picture(create_swapper(), dark, mesh, frames=24)
    own = read_bgr(create_frame_by_bgr(dark))
    x, y = np.rint(mesh[159, :2]).astype(int)
    part = np.s_[y - 12 : y + 20, x - 14 : x + 15]
    assert np.abs(after[part].astype(int) - own[part]).mean() < 4
    # The skin beside them is not darkened by them.
    x, y = np.rint(mesh[280, :2]).astype(int)
    part = np.s_[y + 7 : y + 18, x - 5 : x + 6]
    assert after[part].astype(float).mean() > 0.85 * own[part].mean()


def test_glasses_stay_on_and_the_eyes_between_change(wearer):
    bgr, mesh = wearer
    framed, frame_px = bgr.copy(), np.zeros(bgr.shape[:2], np.uint8)
    for picture, colour in ((framed, (28, 24, 22)), (frame_px, 255)):
        centres = [mesh[list(corners), :2].mean(axis=0) for corners in ((33, 133), (362, 263))]
        for centre in centres:
            cv2.circle(picture, tuple(np.rint(centre).astype(int).tolist()), 33, colour, 5)
        left, right = (tuple(np.rint(c).astype(int).tolist()) for c in centres)
        cv2.line(picture, (left[0] + 33, left[1]), (right[0] - 33, right[1]), colour, 5)
    swapper = create_swapper()
    after = swap_picture(swapper, framed, mesh, frames=54)
    assert swapper._worn[1].glasses.share == pytest.approx(1.0)
    below = (frame_px > 0) & (np.arange(SIZE[1])[:, None] > mesh[[33, 263], 1].mean() + 8)
    assert after[below].mean() < 60
    plain = create_swapper()
    swap_picture(plain, bgr, mesh, frames=30)
    assert plain._worn[1].glasses.share == 0.0


def test_what_stands_before_the_face_stays_as_it_was(wearer):
    """(C64) With an occluder's mask a hand's pixels are the input's."""
    bgr, mesh = wearer
    x, y = np.rint(mesh[13, :2]).astype(int).tolist()
    covered = bgr.copy()
    cv2.rectangle(covered, (x - 40, y - 30), (x + 40, y + 60), (140, 160, 215), -1)
    frame = create_frame_by_bgr(covered)
    before = frame.buffer.copy()
    face = create_face(mesh)
    face.occlusion_box = Box(x - 100.0, y - 100.0, x + 100.0, y + 100.0)
    face.occlusion = np.zeros((100, 100), np.uint8)
    face.occlusion[34:82, 29:72] = 255
    assert create_swapper().swap(create_state(frame, [face]), face)
    part = np.s_[y - 22 : y + 52, x - 32 : x + 33]
    assert np.array_equal(frame.y[part], before[: frame.height][part])
    x, y = np.rint(mesh[168, :2]).astype(int)
    assert np.abs(frame.y[y - 60 : y].astype(int) - before[y - 60 : y]).max() > 20


def test_a_black_face_gives_no_light(wearer):
    """Covered by glasses from rim to rim: nothing is known of the skin, so nothing is shown."""
    _, mesh = wearer
    view = create_view(mesh, *SIZE)
    assert view is not None
    frame = create_frame_by_bgr(np.zeros((SIZE[1], SIZE[0], 3), np.uint8))
    light = LightMeter().measure(view, frame)
    assert light is None or float(light.low[:, :, 0].max()) < 1.0


def test_no_mesh_and_no_picture_makes_it_raise(swapper, wearer):
    """Any turn, size, place, noise and frame: done, or declined and nothing touched."""
    bgr, mesh = wearer
    random, centre = np.random.default_rng(11), mesh.mean(axis=0)
    sizes = [(640, 560), (64, 64), (320, 180), (66, 300)]
    pictures = [cv2.resize(bgr, size, interpolation=cv2.INTER_AREA) for size in sizes]
    pictures.append(random.integers(0, 256, (240, 320, 3)).astype(np.uint8))
    for _ in range(60):
        picture = pictures[random.integers(len(pictures))]
        angle, factor = random.random() * 6.28, np.exp(random.normal(0, 1))
        shape = (mesh - centre) * factor * (1.0, 1.0, random.choice([0.0, 1.0, 3.0, -1.0]))
        turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shape[:, :2] = shape[:, :2] @ turned + random.random(2) * picture.shape[1::-1]
        shape += random.normal(0, 1, shape.shape) * random.choice([0, 0, 1, 10, 60])
        before, frame, done = swap_once(swapper, picture, shape.astype(np.float32))
        assert done or np.array_equal(frame.buffer, before)
