"""Frames with a real face in them, for tests, benches and sheets.

`astronaut.png` (Eileen Collins, NASA, public domain) is the only photo of a person in the tree.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import cv2
import numpy as np

from livefuse.clock import SystemClock
from livefuse.config import Config
from livefuse.face import SourceFace
from livefuse.frame import Colour, create_frame
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.safety.cover import cover_frame
from livefuse.token import create_token

ASTRONAUT = Path(__file__).parent / "data" / "astronaut.png"
FACE_WIDTH_PX = 87.0  # of the face in it, as its mesh's oval measures
FACE_CENTRE = (224.0, 120.0)


def read_picture(path=ASTRONAUT):
    """Return BGR uint8."""
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    assert picture is not None, path
    return picture


def create_frame_by_bgr(bgr, pts=0):
    """Return a frame (BT.601, limited range) that shows `bgr`, cropped to even sides."""
    height, width = bgr.shape[0] // 2 * 2, bgr.shape[1] // 2 * 2
    frame = create_frame(width, height)
    even = np.ascontiguousarray(bgr[:height, :width])
    frame.buffer[:] = cv2.cvtColor(even, cv2.COLOR_BGR2YUV_I420)
    frame.pts, frame.colour = pts, Colour("bt601")
    return frame


def read_bgr(frame):
    """Return what `frame` shows as BGR."""
    return cv2.cvtColor(frame.buffer, cv2.COLOR_YUV2BGR_I420)


def create_face_frame(face_px=250, size=(1280, 720), *, place=(0.5, 0.5), roll=0.0, pts=0):
    """Return a frame with the astronaut's face `face_px` wide at `place` (shares of the size)."""
    scale = face_px / FACE_WIDTH_PX
    matrix = cv2.getRotationMatrix2D(FACE_CENTRE, np.degrees(roll), scale)
    matrix[0, 2] += place[0] * size[0] - FACE_CENTRE[0]
    matrix[1, 2] += place[1] * size[1] - FACE_CENTRE[1]
    bgr = cv2.warpAffine(
        read_picture(), matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT
    )
    return create_frame_by_bgr(bgr, pts)


@cache
def share_sessions():
    """Return sessions for all tests of a process: loading is the dear part."""
    return SessionCache(Config().models)


def create_services(sources=None, gallery=()):
    """Return services that know `sources`, a dict of id -> BGR picture."""

    def load_source(face_id):
        bgr = (sources or {})[face_id]
        return SourceFace(face_id, cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), "0" * 64)

    return Services(cover_frame, load_source, lambda: tuple(gallery), lambda face_id: True)


def create_pipeline(config=None, *, services=None, every_frame=False, sessions=None):
    """Return a real pipeline."""
    return Pipeline(
        config or Config(),
        sessions or share_sessions(),
        SystemClock(),
        services or create_services(),
        every_frame=every_frame,
    )


def analyse(frame, operations=("detect", "align"), config=None):
    """Return the working state of `frame` after the analysis steps, with real networks."""
    token = create_token(operations, now_epoch_s=0.0)
    pipeline = create_pipeline(config, every_frame=True)
    pipeline.prepare(token)
    state = pipeline.begin(frame, token)
    for name in operations:
        pipeline.run_step(state, name)
    assert not state.error, state.error
    return state
