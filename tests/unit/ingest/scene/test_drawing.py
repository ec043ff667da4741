"""The counter must survive what streams do to it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.frame import create_frame
from livefuse.ingest.scene.drawing import (
    compute_counter_cells,
    draw_counter,
    draw_flash,
    fill_box,
    is_flash_lit,
    read_counter,
)

SIZES = [(1280, 720), (640, 360), (1920, 1080), (320, 240), (854, 480)]


@given(value=st.integers(0, 0xFFFF), size=st.sampled_from(["large", "small"]))
def test_every_value_is_read_back(value, size):
    frame = create_frame(640, 360)
    draw_counter(frame, value, size)
    assert read_counter(frame.y) == value


@given(value=st.integers(0, 0xFFFF), cell=st.integers(0, 23))
def test_one_flipped_cell_is_noticed(value, cell):
    cells = compute_counter_cells(value)
    frame = create_frame(640, 360)
    draw_counter(frame, value, "large")
    left, right = cell * 24, (cell + 1) * 24
    frame.y[:16, left:right] = 16 if cells[cell] else 235
    assert read_counter(frame.y) is None


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("size", ["large", "small"])
def test_it_survives_scaling_blur_and_noise(width, height, size):
    random = np.random.default_rng(3)
    for value in (0, 1, 0xFFFF, 0xAAAA, 0x1234):
        frame = create_frame(width, height)
        frame.y[:] = 120
        draw_counter(frame, value, size)
        noisy = np.clip(frame.y + random.normal(0, 12, frame.y.shape), 0, 255).astype(np.uint8)
        assert read_counter(noisy) == value
        half = cv2.resize(noisy, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
        assert read_counter(np.asarray(half, np.uint8)) == value
        twice = cv2.resize(noisy, (width * 2, height * 2), interpolation=cv2.INTER_LINEAR)
        assert read_counter(np.asarray(twice, np.uint8)) == value


@pytest.mark.parametrize("level", [0, 16, 120, 235, 255])
def test_a_plain_picture_has_no_counter(level):
    assert read_counter(np.full((360, 640), level, np.uint8)) is None


def test_noise_has_no_counter():
    random = np.random.default_rng(5)
    pictures = random.integers(0, 256, (200, 90, 160), dtype=np.uint8)
    assert all(read_counter(picture) is None for picture in pictures)


def test_the_flash_is_seen_and_the_counter_is_left_alone():
    frame = create_frame(640, 360)
    draw_counter(frame, 77, "large")
    draw_flash(frame, is_lit=False)
    assert not is_flash_lit(frame.y)
    draw_flash(frame, is_lit=True)
    assert is_flash_lit(frame.y)
    assert read_counter(frame.y) == 77


def test_a_box_fills_all_three_planes_and_nothing_else():
    frame = create_frame(64, 48)
    fill_box(frame, (9, 10, 21, 20), (200, 90, 150))
    assert (frame.y[10:20, 8:20] == 200).all()
    assert (frame.u[5:10, 4:10] == 90).all()
    assert (frame.v == 150).sum() == 5 * 6
    assert (frame.y == 200).sum() == 10 * 12
