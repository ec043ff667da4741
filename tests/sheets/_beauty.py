"""What the sheets about faces share: the astronaut, made up."""

from __future__ import annotations

from functools import cache

from livefuse.frame import create_frame
from livefuse.pipeline.effects.beauty_amounts import resolve_amounts
from livefuse.pipeline.effects.beauty_painter import BeautyPainter
from livefuse.pipeline.effects.beauty_sitter import Sitter
from tests.faces import analyse, create_face_frame, read_bgr


@cache
def get_face(face_px, size=(1280, 720)):
    """Return a frame and its face."""
    frame = create_face_frame(face_px, size)
    # Around the picture its mirror images go on: the middle one is meant.
    faces = analyse(frame).faces
    return frame, min(faces, key=lambda f: abs(f.track.box.x0 + f.track.box.x1 - frame.width))


def copy_frame(frame):
    copy = create_frame(frame.width, frame.height)
    copy.buffer[:] = frame.buffer
    return copy


def make_up(frame, face, values):
    """Return what `frame` shows with `values` done to `face`, BGR."""
    copy = copy_frame(frame)
    amounts = resolve_amounts(values, frame.colour)
    BeautyPainter().paint(copy, face, amounts, Sitter(), 1 / 30)
    return read_bgr(copy)


def crop_face(picture, face, share=0.75):
    """Return the square around the face."""
    low, high = face.mesh[:, :2].min(axis=0), face.mesh[:, :2].max(axis=0)
    x, y = (low + high) / 2
    half = share * (high - low).max()
    y0, y1 = max(int(y - half), 0), int(y + half)
    x0, x1 = max(int(x - half), 0), int(x + half)
    return picture[y0:y1, x0:x1]
