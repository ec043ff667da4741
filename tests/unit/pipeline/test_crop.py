"""Crops read straight from the planes, against OpenCV on the whole picture."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.geometry import Similarity, create_matrix, create_similarity
from livefuse.pipeline.crop import CropReader, _cut_region
from tests.faces import create_frame_by_bgr


@pytest.fixture(scope="module")
def frame():
    noise = np.random.default_rng(3).normal(0, 1, (240, 320, 3))
    return create_frame_by_bgr(
        np.clip(128 + 300 * cv2.GaussianBlur(noise, (0, 0), 8), 0, 255).astype(np.uint8)
    )


@pytest.mark.parametrize("scale", [0.3, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("angle", [0.0, 0.4, -2.0])
def test_a_crop_shows_what_a_warp_of_the_picture_shows(frame, scale, angle):
    to_crop = create_similarity(scale, angle, 0, 0)
    a, b = to_crop.a, to_crop.b
    to_crop = Similarity(a, b, 48 - a * 160 + b * 120, 48 - b * 160 - a * 120)
    rgb = CropReader(96).read(frame, to_crop).astype(int)
    whole = cv2.cvtColor(frame.buffer, cv2.COLOR_YUV2RGB_I420)
    known = cv2.warpAffine(
        whole, create_matrix(to_crop), (96, 96), borderMode=cv2.BORDER_REPLICATE
    ).astype(int)
    assert np.abs(rgb - known)[4:-4, 4:-4].mean() < 2.0
    assert np.abs(rgb - known)[4:-4, 4:-4].max() < 25


def test_a_crop_beyond_the_picture_repeats_its_edge(frame):
    rgb = CropReader(32).read(frame, Similarity(1.0, 0.0, 5000.0, 5000.0))
    assert np.ptp(rgb.reshape(-1, 3), axis=0).max() <= 2
    rgb = CropReader(32).read(frame, Similarity(1.0, 0.0, -9000.0, -9000.0))
    assert np.ptp(rgb.reshape(-1, 3), axis=0).max() <= 2


@settings(max_examples=200)
@given(
    scale=st.floats(0.05, 20),
    angle=st.floats(-3.2, 3.2),
    x=st.floats(-400, 800),
    y=st.floats(-400, 800),
    size=st.sampled_from([16, 96, 192]),
)
def test_the_region_holds_all_that_the_crop_shows_and_is_never_empty(scale, angle, x, y, size):
    transform = create_similarity(scale, angle, x, y)
    x0, y0, x1, y1 = _cut_region((240, 320), transform, size)
    assert 0 <= x0 < x1 <= 320
    assert 0 <= y0 < y1 <= 240
    inverse = cv2.invertAffineTransform(create_matrix(transform))
    corners = np.array([[0, 0, 1], [size, 0, 1], [0, size, 1], [size, size, 1]]) @ inverse.T
    low, high = corners.min(axis=0), corners.max(axis=0)
    assert x0 <= max(low[0], 0) or x0 == 319
    assert y0 <= max(low[1], 0) or y0 == 239
    assert x1 >= min(high[0], 320) or x1 == 1
    assert y1 >= min(high[1], 240) or y1 == 1
