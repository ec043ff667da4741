"""The tone along the rim (C65): found where it is, skin only, and followed slowly."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from livefuse.pipeline.effects.colour_match import (
    ColourMatch,
    add_difference,
    measure_difference,
    take_samples,
)


def create_mask(size=128):
    mask = np.zeros((size, size), np.uint8)
    cv2.ellipse(mask, ((size / 2, size / 2), (0.7 * size, 0.8 * size), 0), 255, -1)
    return cv2.blur(mask, (17, 17))


def create_crop(size=128, rgb=(0.7, 0.5, 0.4)):
    crop = np.empty((3, size, size), np.float32)
    crop[:] = np.array(rgb, np.float32).reshape(3, 1, 1)
    return crop


def sample(crop):
    return take_samples(crop, 1.0, 0.0)


@pytest.mark.parametrize("size", [128, 256, 512])
def test_another_tone_is_found_whole(size):
    before, after = create_crop(size), create_crop(size, (0.6, 0.55, 0.45))
    difference = measure_difference(sample(before), sample(after), create_mask())
    assert difference is not None
    np.testing.assert_allclose(difference.reshape(-1, 3), [(0.1, -0.05, -0.05)] * 1024, atol=1e-3)
    add_difference(after, difference, 1.0)
    np.testing.assert_allclose(after, before, atol=1e-3)


def test_units_of_a_network_are_its_own():
    before, after = create_crop(), create_crop(rgb=(0.6, 0.55, 0.45))
    signed = after * 2 - 1
    difference = measure_difference(sample(before), take_samples(signed, 0.5, 0.5), create_mask())
    assert difference is not None
    add_difference(signed, difference, 0.5)
    np.testing.assert_allclose(signed * 0.5 + 0.5, before, atol=1e-3)


def test_a_side_light_stays_on_its_side():
    before = create_crop()
    before[:, :, :64] *= 0.9
    difference = measure_difference(sample(before), sample(create_crop()), create_mask())
    assert difference is not None
    assert difference[16, 3, 0] < -0.05
    assert abs(difference[16, 28, 0]) < 0.01


def test_hair_over_the_forehead_does_not_count():
    before, after = create_crop(), create_crop(rgb=(0.6, 0.45, 0.35))
    before[:, :30] = 0.1
    difference = measure_difference(sample(before), sample(after), create_mask())
    assert difference is not None
    assert difference[6:, 4:28, 0].min() > 0.08


def test_another_light_is_no_tone():
    difference = measure_difference(
        sample(create_crop(rgb=(0.9, 0.9, 0.9))), sample(create_crop(rgb=(0.1, 0.1, 0.1))),
        create_mask(),
    )  # fmt: skip
    assert difference is not None
    assert difference.max() <= 0.15


def test_without_a_rim_nothing_is_known():
    nothing = np.zeros((128, 128), np.uint8)
    crop = sample(create_crop())
    assert measure_difference(crop, crop, nothing) is None
    assert ColourMatch().follow(1, crop, crop, nothing) is None


def test_it_follows_slowly_and_keeps_tracks_apart():
    match, mask = ColourMatch(), create_mask()
    before, after = sample(create_crop()), sample(create_crop(rgb=(0.6, 0.5, 0.4)))
    first = match.follow(1, before, after, mask)
    assert first is not None
    assert first[16, 16, 0] == pytest.approx(0.1, abs=1e-3)
    jump = match.follow(1, after, after, mask)
    assert jump is not None
    assert 0.05 < jump[16, 16, 0] < 0.1
    assert [match.get(1) is not None for _ in range(3)] == [True, True, False]
    assert match.get(3) is None
    other = match.follow(2, before, before, mask)
    assert other is not None
    assert np.abs(other).max() < 1e-3


def test_what_is_kept_is_bounded():
    match, mask, crop = ColourMatch(), create_mask(), sample(create_crop())
    for track_id in range(200):
        match.follow(track_id, crop, crop, mask)
    assert len(match._kept) <= 16
