"""Clips that lie on their side (C67)."""

import math

import msgspec
import numpy as np
import pytest

from livefuse.config import Config
from livefuse.face import Box, Detection
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.detect_step import create_detector
from livefuse.pipeline.analysis.rotate import RotatingDetector
from tests.faces import create_face_frame, create_frame_by_bgr, read_bgr, share_sessions


class UprightDetector:
    """Finds a bright spot, if the spot's own upper half is the brighter: else it is blind."""

    def __init__(self):
        self.looks = []

    def detect(self, frame, *, light=False):
        self.looks.append(((frame.width, frame.height), light))
        ys, xs = np.nonzero(frame.y > 150)
        if not len(xs) or frame.y[ys.min(), xs[0]] < 240 or ys.min() == ys.max():
            return []
        x0, y0, x1, y1 = xs.min(), ys.min(), xs.max() + 1, ys.max() + 1
        if not (frame.y[y0, x0:x1] > 240).all():
            return []
        points = np.array(
            [(x0, y0), (x1 - 1, y0), (x0, y1 - 1), (x1 - 1, y1 - 1), (x0, y0)], np.float32
        )
        return [Detection(Box(x0, y0, x1, y1), 0.9, points)]


def create_spot(turns):
    """A frame of 64x48 with a spot at x 20..30, y 8..14, bright at its top, turned left `turns`."""
    upright = np.full((48, 64), 20, np.uint8)
    upright[8:14, 20:30] = 200
    upright[8:10, 20:30] = 250
    turned = np.rot90(upright, turns)
    frame = create_frame(turned.shape[1], turned.shape[0])
    frame.y[:] = turned
    return frame


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_face_is_found_where_it_is_whatever_the_turn(turns):
    """(C67)"""
    frame = create_spot(turns)
    (found,) = RotatingDetector(UprightDetector()).detect(frame)
    ys, xs = np.nonzero(frame.y > 150)
    assert found.box == (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1)
    # The first point is the face's own upper left: where the bright edge begins.
    x, y = found.landmarks5[0]
    assert frame.y[round(y), round(x)] == 250
    assert not np.array_equal(found.landmarks5[0], found.landmarks5[3])


def test_other_turns_cost_only_full_looks_that_find_nothing():
    detector = UprightDetector()
    rotating = RotatingDetector(detector)
    rotating.detect(create_spot(0))
    assert len(detector.looks) == 1
    rotating.detect(create_frame(64, 48), light=True)
    assert len(detector.looks) == 2
    rotating.detect(create_frame(64, 48))
    assert len(detector.looks) == 6


def test_the_turn_that_found_a_face_is_tried_first_also_by_light_looks():
    detector = UprightDetector()
    rotating = RotatingDetector(detector)
    frame = create_spot(3)
    assert rotating.detect(frame)
    detector.looks.clear()
    assert rotating.detect(frame, light=True)
    assert rotating.detect(frame)
    assert detector.looks == [((64, 48), True), ((64, 48), False)]
    assert rotating.detect(create_spot(0))
    detector.looks.clear()
    assert rotating.detect(create_spot(0), light=True)
    assert len(detector.looks) == 1


def test_pictures_of_other_sizes_do_not_pile_up():
    rotating = RotatingDetector(UprightDetector())
    for size in range(32, 72, 4):
        rotating.detect(create_frame(size, 48))
    assert len(rotating._turned) <= 2


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_real_clips_are_found_when_enabled(turns):
    """(C67) BlazeFace does not see a head that stands on its crown; when enabled it is found."""
    frame = create_frame_by_bgr(
        np.ascontiguousarray(np.rot90(read_bgr(create_face_frame(110, (640, 480))), turns))
    )
    detect = msgspec.structs.replace(Config().detect, model="blazeface_full_192", rotations=True)
    config = msgspec.structs.replace(Config(), detect=detect)
    (found,) = create_detector(config, share_sessions(), every_frame=False).detect(frame)
    middle = np.array([found.box.x0 + found.box.x1, found.box.y0 + found.box.y1]) / 2
    assert np.abs(middle - (frame.width / 2, frame.height / 2)).max() < 40
    eyes = found.landmarks5[1] - found.landmarks5[0]
    roll = math.remainder(math.atan2(eyes[1], eyes[0]) + turns * math.pi / 2, math.tau)
    assert abs(roll) < 0.6
