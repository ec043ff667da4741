"""One still picture of a person (C68)."""

import cv2
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.errors import RefusedError
from livefuse.pipeline.analysis import portrait as portrait_module
from livefuse.pipeline.analysis.portrait import analyse_portrait, embed_picture, find_single_face
from tests.faces import FACE_CENTRE, FACE_WIDTH_PX, read_picture, share_sessions


@pytest.fixture(scope="module")
def picture_rgb():
    return cv2.cvtColor(read_picture(), cv2.COLOR_BGR2RGB)


@pytest.fixture(scope="module")
def portrait(picture_rgb):
    return analyse(picture_rgb)


def analyse(picture_rgb):
    return analyse_portrait(picture_rgb, share_sessions(), Config())


def test_a_portrait_is_known_in_px_of_its_picture(portrait):
    box = portrait.box
    middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
    assert np.abs(middle - FACE_CENTRE).max() < 15
    assert portrait.mesh.shape == (478, 3)
    assert np.linalg.norm(portrait.mesh[454] - portrait.mesh[234]) == pytest.approx(
        FACE_WIDTH_PX, rel=0.08
    )
    assert portrait.landmarks5.shape == (5, 2)
    assert np.linalg.norm(portrait.embedding) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("factor", [0.8, 5.0])
def test_its_size_changes_nothing(picture_rgb, portrait, factor):
    """Also beyond the size that is looked at, and with odd sides."""
    scaled = cv2.resize(
        picture_rgb[:, :511],
        None,
        fx=factor,
        fy=factor,
        interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR,
    )
    found = analyse(scaled)
    assert np.abs(found.mesh / factor - portrait.mesh)[:, :2].max() < 3.0
    assert float(found.embedding @ portrait.embedding) > 0.98


def test_a_face_that_fills_the_picture_is_found(picture_rgb, portrait):
    close = np.ascontiguousarray(picture_rgb[70:175, 180:270])
    found = analyse(cv2.resize(close, None, fx=6, fy=6, interpolation=cv2.INTER_CUBIC))
    assert float(found.embedding @ portrait.embedding) > 0.97
    assert np.abs(found.mesh[:, :2] / 6 + (180, 70) - portrait.mesh[:, :2]).max() < 6.0


def test_no_face_is_refused_in_words(picture_rgb):
    """(C68)"""
    with pytest.raises(RefusedError, match="no face") as refusal:
        analyse(np.ascontiguousarray(picture_rgb[300:, :200]))
    assert refusal.value.hint


def test_two_faces_are_refused_in_words(picture_rgb):
    """(C68)"""
    with pytest.raises(RefusedError, match="2 faces") as refusal:
        analyse(np.hstack([picture_rgb, picture_rgb[:, ::-1]]))
    assert "crop" in refusal.value.hint


def test_a_tiny_face_is_refused_with_its_size(picture_rgb):
    small = cv2.resize(picture_rgb, None, fx=0.4, fy=0.4, interpolation=cv2.INTER_AREA)
    with pytest.raises(RefusedError, match="px wide"):
        analyse(small)


def test_a_face_that_is_turned_away_is_refused(picture_rgb, monkeypatch):
    monkeypatch.setattr(portrait_module, "compute_pose", lambda mesh: (-1.1, 0.0, 0.0))
    with pytest.raises(RefusedError, match="turned away by 63 degrees"):
        analyse(picture_rgb)


def test_the_box_and_the_vector_can_be_had_alone(picture_rgb, portrait):
    sessions, config = share_sessions(), Config()
    assert find_single_face(picture_rgb, sessions, config) == portrait.box
    assert np.array_equal(embed_picture(picture_rgb, sessions, config), portrait.embedding)


def test_the_picture_stays_as_it_was(picture_rgb):
    before = picture_rgb.copy()
    analyse(picture_rgb)
    assert np.array_equal(picture_rgb, before)
