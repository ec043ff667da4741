import numpy as np
import pytest

from livefuse.face import Box
from livefuse.geometry import apply_similarity, fit_ellipse
from livefuse.pipeline.analysis.change import ChangeWatch, compute_cells, is_cut
from livefuse.pipeline.analysis.flow import compare_patches, cut_patch, follow_face
from tests.unit.pipeline.scenes import draw_head, draw_noise


def get_ellipse(detection, roll=0.0):
    return fit_ellipse(detection.box, roll)


@pytest.mark.parametrize(
    "move",
    [
        {"x": 326.0, "y": 157.0},
        {"x": 332.0},
        {"scale": 0.42},
        {"roll": 0.08},
        {"x": 316.0, "y": 164.0, "scale": 0.39, "roll": -0.05},
    ],
)
def test_flow_finds_where_the_head_went(move):
    before, detection = draw_head()
    after, truth = draw_head(**move)
    motion = follow_face(before.y, after.y, get_ellipse(detection))
    assert motion is not None
    moved = apply_similarity(motion, detection.landmarks5)
    assert np.abs(moved - truth.landmarks5).max() < 0.03 * truth.box.width


def test_flow_is_not_believed_when_the_face_is_gone():
    before, detection = draw_head()
    for seed in range(3):
        after = draw_noise(640, 360, seed=seed, sigma=3.0)
        assert follow_face(before.y, after.y, get_ellipse(detection)) is None


def test_flow_of_a_flat_picture_is_no_flow():
    flat = np.full((360, 640), 90, np.uint8)
    _, detection = draw_head()
    assert follow_face(flat, flat, get_ellipse(detection)) is None


def test_flow_outside_the_picture_is_no_flow():
    before, detection = draw_head(x=320)
    away = get_ellipse(detection)._replace(x=-300.0)
    assert follow_face(before.y, before.y, away) is None


def test_a_patch_knows_its_face_again():
    before, one = draw_head()
    after, other = draw_head(x=200, y=180, roll=0.4, scale=0.5)
    patch = cut_patch(before.y, get_ellipse(one))
    assert compare_patches(patch, cut_patch(after.y, get_ellipse(other, 0.4))) > 0.9
    assert compare_patches(patch, cut_patch(draw_noise(640, 360).y, get_ellipse(one))) < 0.5
    assert compare_patches(patch, None) == 0.0


def test_another_scene_is_a_cut_a_movement_and_a_flash_are_none():
    head, _ = draw_head()
    moved, _ = draw_head(x=330)
    other = draw_noise(640, 360, seed=99, sigma=20.0)
    flash = np.clip(head.y.astype(np.int16) + 40, 0, 255).astype(np.uint8)
    cells = compute_cells(head.y)
    assert is_cut(cells, compute_cells(other.y))
    assert not is_cut(cells, compute_cells(moved.y))
    assert not is_cut(cells, compute_cells(flash))
    assert is_cut(np.zeros_like(cells), cells)


def watch(level=18.0, seen=None):
    watching = ChangeWatch(level)
    if seen is not None:
        watching.note_detection(seen, found_new=False)
    return watching


def test_shoulders_that_move_are_no_newcomer_when_bodies_are_told_from_people():
    before = np.full((36, 64), 100.0, np.float32)
    shoulders, beside = before.copy(), before.copy()
    shoulders[20:30, 24:40] = 160.0
    beside[4:12, 50:60] = 160.0
    face = Box(0.45, 0.2, 0.55, 0.5)
    assert watch(seen=before).has_newcomer(shoulders, [face])
    assert not watch(seen=before).has_newcomer(shoulders, [face], with_bodies=True)
    assert watch(seen=before).has_newcomer(beside, [face], with_bodies=True)


def test_who_leans_in_beside_the_wearer_s_head_is_no_body():
    """Nobody is to be bare until the next look that is due."""
    before = np.full((36, 64), 100.0, np.float32)
    leaning = before.copy()
    leaning[7:16, 38:46] = 160.0
    face = Box(0.45, 0.2, 0.55, 0.5)
    assert watch(seen=before).has_newcomer(leaning, [face], with_bodies=True)


def test_a_newcomer_is_noticed_outside_known_faces_only():
    empty = draw_noise(640, 360)
    with_head, detection = draw_head(back=1)
    before, after = compute_cells(empty.y), compute_cells(with_head.y)
    assert watch(seen=before).has_newcomer(after, [])
    box = detection.box
    grown = Box(box.x0 / 640 - 0.1, 0.0, box.x1 / 640 + 0.1, 1.0)
    assert not watch(seen=before).has_newcomer(after, [grown])
    assert not watch(seen=before).has_newcomer(before + 30.0, [])
    assert watch().has_newcomer(before, [])


def test_what_changes_all_the_time_is_soon_ignored_but_elsewhere_is_not():
    still = np.full((36, 64), 100.0, np.float32)
    watching = watch(seen=still)
    alarms = []
    for index in range(20):
        ticking = still.copy()
        ticking[2:4, 2:6] += 60.0 if index % 2 else 0.0
        alarmed = watching.has_newcomer(ticking, [])
        alarms.append(alarmed)
        if alarmed:
            watching.note_detection(ticking, found_new=False)
    assert 1 <= sum(alarms) <= 3
    person = still.copy()
    person[20:26, 40:44] += 30.0
    assert watching.has_newcomer(person, [])


def test_a_place_where_someone_came_in_stays_watched():
    still = np.full((36, 64), 100.0, np.float32)
    watching = watch(seen=still)
    person = still.copy()
    person[20:26, 40:44] += 30.0
    for _ in range(3):
        assert watching.has_newcomer(person, [])
        watching.note_detection(person, found_new=True)
        assert watching.has_newcomer(still, [])
        watching.note_detection(still, found_new=True)
