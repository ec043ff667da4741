"""The label of generated pictures."""

import numpy as np
import pytest

from livefuse.config import MarkConfig
from livefuse.frame import create_frame
from livefuse.publish.mark import Label


def draw_label(size=(1280, 720), luma=16, **config):
    frame = create_frame(*size)
    frame.y[:] = luma
    before = frame.buffer.copy()
    Label(MarkConfig(**config)).draw(frame)
    return frame, before


def find_changed(frame, before):
    rows, columns = np.nonzero(frame.y != before[: frame.height])
    return columns.min(), rows.min(), columns.max(), rows.max()


@pytest.mark.parametrize("luma", [16, 128, 235])
def test_the_label_can_be_read_on_any_ground(luma):
    frame, before = draw_label(luma=luma)
    x0, y0, x1, y1 = find_changed(frame, before)
    part = frame.y[y0:y1, x0:x1]
    assert np.percentile(part, 98) > 220
    assert np.percentile(part, 50) < 80


@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (640, 360), (1920, 1080)])
def test_its_letters_have_a_twentieth_of_the_shorter_side(size):
    frame, before = draw_label(size, luma=16)
    x0, y0, x1, y1 = find_changed(frame, before)
    bright = np.nonzero((frame.y[y0 : y1 + 1, x0 : x1 + 1] > 150).any(axis=1))[0]
    assert bright.max() - bright.min() + 1 >= 0.05 * min(size) - 1
    assert 0 <= x0 < x1 < size[0]
    assert 0 <= y0 < y1 < size[1]


@pytest.mark.parametrize("corner", ["top-left", "top-right", "bottom-left", "bottom-right"])
def test_it_stands_in_its_corner_and_touches_nothing_else(corner):
    frame, before = draw_label(luma=100, corner=corner)
    x0, y0, x1, y1 = find_changed(frame, before)
    assert (x0 > 640) == ("right" in corner)
    assert (y0 > 360) == ("bottom" in corner)
    same = frame.y == before[:720]
    same[y0 : y1 + 1, x0 : x1 + 1] = True
    assert same.all()


@pytest.mark.parametrize("size", [(2, 2), (64, 48), (32, 320)])
def test_small_frames_have_what_fits(size):
    frame, before = draw_label(size, luma=100)
    assert not np.array_equal(frame.buffer, before)


def test_drawing_costs_little_of_the_picture():
    """The box is a corner's worth, not a banner over the picture."""
    frame, before = draw_label(luma=100)
    x0, y0, x1, y1 = find_changed(frame, before)
    assert (x1 - x0) * (y1 - y0) < 0.03 * 1280 * 720
