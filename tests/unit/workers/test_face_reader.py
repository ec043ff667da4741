"""Enrolled pictures: exactly one face, that can be made out; real networks."""

import cv2
import numpy as np
import pytest

from livefuse.clock import ManualClock
from livefuse.config import Config, SafetyConfig
from livefuse.errors import RefusedError
from livefuse.safety.faces import FaceStore
from livefuse.workers.face_reader import FaceReader
from tests.faces import ASTRONAUT, read_picture, share_sessions


@pytest.fixture(scope="module")
def reader():
    return FaceReader(Config(), share_sessions())


@pytest.fixture(scope="module")
def portrait():
    """RGB, 512 x 512."""
    return cv2.cvtColor(read_picture(), cv2.COLOR_BGR2RGB)


def test_one_face_passes(reader, portrait):
    """C68"""
    assert reader.check(portrait) is None
    assert reader.check(portrait[1:, 3:]) is None  # odd sides


def test_no_face_is_refused_in_words(reader, portrait):
    """C68"""
    with pytest.raises(RefusedError, match=r"no face in the picture: crop"):
        reader.check(np.full((300, 400, 3), 128, np.uint8))
    with pytest.raises(RefusedError, match="no face"):
        reader.check(portrait[320:, :200])


def test_two_faces_are_refused_in_words(reader, portrait):
    """C68"""
    head = portrait[:260, 100:360]
    with pytest.raises(RefusedError, match="2 faces in the picture: crop"):
        reader.check(np.hstack([head, head[:, ::-1]]))


def test_a_tiny_face_is_refused_in_words(reader, portrait):
    small = cv2.resize(portrait, None, fx=0.4, fy=0.4, interpolation=cv2.INTER_AREA)
    with pytest.raises(RefusedError, match=r"px wide, 64 are needed"):
        reader.check(small)


def test_embeddings_are_unit_vectors_that_know_a_face_again(reader, portrait):
    one = reader.embed(portrait)
    smaller = cv2.resize(portrait, None, fx=0.8, fy=0.8, interpolation=cv2.INTER_AREA)
    assert one.dtype == np.float32
    assert np.linalg.norm(one) == pytest.approx(1.0, abs=1e-4)
    assert float(one @ reader.embed(smaller)) > 0.95
    with pytest.raises(RefusedError, match="no face"):
        reader.embed(np.full((300, 400, 3), 128, np.uint8))


def test_six_looks_at_a_face_are_one_person_s(reader, portrait):
    """C75: the first is the plain one, the others agree with it."""
    looks = reader.embed_looks(portrait)
    assert looks.shape == (6, 128)
    assert np.abs(looks[0] - reader.embed(portrait)).max() < 1e-5
    assert float((looks @ looks[0]).min()) > 0.95
    mirrored = reader.embed_looks(np.ascontiguousarray(portrait[:, ::-1]))
    assert float(np.median(mirrored @ looks.T)) > 0.95
    assert reader.get_same() == reader.embedder.get_same() == 0.924


def test_an_enrolled_person_is_in_the_gallery(reader, tmp_path):
    """R24"""
    settings = SafetyConfig(folder=str(tmp_path))
    store = FaceStore(settings, ManualClock(), embedder=reader.embedder)
    store.enroll(
        ASTRONAUT.read_bytes(), "Eileen Collins, tests, 90d", check=reader.check, name="Eileen"
    )
    (known,) = store.list_gallery()
    assert known.person == "Eileen"
    rgb = store.load_source(store.resolve("Eileen")).picture_rgb
    assert float(known.embedding @ reader.embed(rgb)) == pytest.approx(1.0, abs=1e-4)
