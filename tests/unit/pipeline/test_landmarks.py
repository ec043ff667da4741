"""Sets of landmarks by their count (R16)."""

import numpy as np
import pytest

from livefuse.face import Box, Face, Track
from livefuse.pipeline.landmarks import (
    COUNTS,
    POINTS_106_AS_68,
    get_landmarks,
    get_landmarks5,
)
from tests.faces import analyse, create_face_frame


@pytest.fixture(scope="module")
def face():
    return analyse(create_face_frame(250)).faces[0]


def get(face, count):
    """Return the set, which is known."""
    points = get_landmarks(face, count)
    assert points is not None
    return points


def take_five_of_68(points):
    """Return eyes, nose tip and corners of the mouth of iBUG's points."""
    eyes = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
    return np.stack([*eyes, points[30], points[48], points[54]])


def create_bare_face():
    points = np.arange(10, dtype=np.float32).reshape(5, 2)
    return Face(Track(1, Box(0, 0, 10, 10), points, 1.0, 0.0))


@pytest.mark.parametrize("count", [5, 68, 106, 468])
def test_a_mesh_gives_every_count_but_203(face, count):
    points = get(face, count)
    assert points.shape == (count, 2)
    assert points.dtype == np.float32
    box = face.track.box
    inside = (points > (box.x0 - 30, box.y0 - 60)) & (points < (box.x1 + 30, box.y1 + 30))
    assert inside.all()


def test_203_points_come_from_their_own_network_only(face):
    assert get_landmarks(face, 203) is None
    known = Face(face.track, mesh=face.mesh, landmarks={203: np.zeros((203, 2), np.float32)})
    assert get(known, 203).shape == (203, 2)


def test_what_a_network_found_goes_before_the_mesh(face):
    own = np.full((68, 2), 7.0, np.float32)
    assert get(Face(face.track, mesh=face.mesh, landmarks={68: own}), 68) is own


def test_without_a_mesh_only_the_tracks_five_are_known():
    face = create_bare_face()
    assert np.array_equal(get(face, 5), face.track.landmarks5)
    assert np.array_equal(get_landmarks5(face), face.track.landmarks5)
    assert all(get_landmarks(face, count) is None for count in COUNTS if count != 5)


def test_an_unknown_count_is_refused_with_the_known_ones(face):
    with pytest.raises(ValueError, match="203"):
        get_landmarks(face, 98)


def test_the_sets_agree_on_eyes_nose_and_mouth(face):
    """68 and 106 points name the same five places as the mesh, within 4 % of the face."""
    five = get(face, 5)
    for other in (
        take_five_of_68(get(face, 68)),
        get(face, 106)[[38, 88, 86, 52, 61]],  # as insightface numbers them
    ):
        assert np.abs(other - five).max() < 0.04 * face.track.box.width


def test_68_points_run_as_ibug_has_them(face):
    points = get(face, 68)
    jaw, lips = points[:17], points[48:60]
    assert (np.diff(jaw[:, 0]) > -3).all()  # from image-left to image-right
    assert jaw[8, 1] == jaw[:, 1].max()
    assert (np.diff(points[17:27, 0]) > 0).all()  # both brows
    assert points[36, 0] < points[39, 0] < points[42, 0] < points[45, 0]
    assert (np.diff(points[27:31, 1]) > 0).all()  # down the nose
    assert points[51, 1] < points[57, 1]
    assert lips[0, 0] < lips[3, 0] < lips[6, 0]


def test_106_points_are_each_named_once(face):
    assert len(set(POINTS_106_AS_68.tolist())) == 68
    points = get(face, 106)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(106)
    # Each eye's pupil has two numbers; all others are places of their own.
    assert (distances.min(axis=1) < 1e-3).sum() == 4


def test_five_points_do_not_follow_a_glance(face):
    """Eyes are read at their corners: moving the irises moves nothing."""
    glance = face.mesh.copy()
    glance[468:] += 9.0
    assert np.array_equal(
        get_landmarks5(Face(face.track, mesh=glance)),
        get_landmarks5(Face(face.track, mesh=face.mesh)),
    )
