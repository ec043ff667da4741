"""The gallery: names by one matrix product (R24)."""

import numpy as np
import pytest

from livefuse.face import KnownFace
from livefuse.pipeline.analysis.gallery import Gallery


def create_unit(seed, size=128):
    vector = np.random.default_rng(seed).normal(0, 1, size).astype(np.float32)
    return vector / np.linalg.norm(vector)


def test_one_product_gives_the_cosine_to_each_person():
    known = [KnownFace(f"p{seed}", create_unit(seed)) for seed in range(50)]
    gallery = Gallery(known, 128)
    asked = np.stack([create_unit(seed) for seed in (3, 49, 999)])
    cosines = gallery.compare(asked)
    assert cosines.shape == (3, 50)
    assert cosines.argmax(axis=1)[:2].tolist() == [3, 49]
    assert cosines[0, 3] == pytest.approx(1.0, abs=1e-5)
    assert cosines[2].max() < 0.5
    one_by_one = [[float(face.embedding @ row) for face in known] for row in asked]
    assert np.allclose(cosines, one_by_one, atol=1e-5)


def test_of_a_persons_vectors_the_nearest_counts():
    known = [
        KnownFace("anna", create_unit(1)),
        KnownFace("bob", create_unit(2)),
        KnownFace("anna", create_unit(3)),
    ]
    gallery = Gallery(known, 128)
    assert gallery.people == ("anna", "bob")
    assert gallery.compare(create_unit(3)[None])[0, 0] == pytest.approx(1.0, abs=1e-5)


def test_vectors_of_another_network_are_skipped_and_counted():
    known = [KnownFace("anna", create_unit(1, 512)), KnownFace("bob", create_unit(2))]
    gallery = Gallery(known, 128)
    assert gallery.people == ("bob",)
    assert gallery.skipped == 1
    assert Gallery((), 128).compare(create_unit(1)[None]).shape == (1, 0)


def test_vectors_are_normalised_and_the_callers_stay_as_they_were():
    vector = create_unit(1) * 7
    gallery = Gallery([KnownFace("anna", vector)], 128)
    assert np.linalg.norm(gallery.matrix[0]) == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(vector) == pytest.approx(7.0, abs=1e-4)
