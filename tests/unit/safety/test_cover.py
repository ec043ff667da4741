import cv2
import numpy as np
import pytest

from livefuse.frame import create_frame
from livefuse.ingest.scene.talking_head import load_portrait
from livefuse.safety import cover
from livefuse.safety.cover import cover_frame


def draw_portrait(width, height):
    frame = create_frame(width, height)
    small = cv2.resize(load_portrait(), (width, height))
    frame.buffer[:] = cv2.cvtColor(small, cv2.COLOR_BGR2YUV_I420)
    return frame


@pytest.mark.parametrize("size", [(2, 2), (16, 8), (320, 240), (854, 480), (1918, 974), (270, 480)])
def test_no_detail_is_left_at_any_size(size):
    frame = draw_portrait(*size)
    cover_frame(frame)
    step = np.abs(np.diff(frame.y.astype(np.int16), axis=1)).max(initial=0)
    # 16 cells along the long side: brightness climbs over a cell, never from one px to the next.
    assert step <= 255 / max(max(size) / 16, 1) + 2


def test_the_picture_keeps_its_light_and_colour():
    frame = draw_portrait(640, 360)
    before = [float(plane.mean()) for plane in (frame.y, frame.u, frame.v)]
    cover_frame(frame)
    after = [float(plane.mean()) for plane in (frame.y, frame.u, frame.v)]
    assert np.abs(np.subtract(before, after)).max() < 6


def test_a_cover_that_fails_turns_the_frame_grey(monkeypatch):
    def fail(frame):
        raise RuntimeError("no memory")

    monkeypatch.setattr(cover, "_blur_planes", fail)
    frame = draw_portrait(64, 48)
    cover_frame(frame)
    assert (frame.buffer == 128).all()
