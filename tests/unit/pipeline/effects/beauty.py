"""What the tests of beautify share: the astronaut's face, made up without a pipeline around it."""

from functools import cache

import numpy as np

from livefuse.face import Face
from livefuse.frame import create_frame
from livefuse.pipeline.effects.beauty_amounts import resolve_amounts
from livefuse.pipeline.effects.beauty_geometry import measure_face
from livefuse.pipeline.effects.beauty_painter import BeautyPainter
from livefuse.pipeline.effects.beauty_sitter import Sitter
from livefuse.pipeline.topology import UV
from tests.faces import analyse, create_face_frame

FULL = {
    "smooth": 0.6, "texture": 0.5, "even": 0.5, "brighten": 0.3, "whiten": 0.4, "rosy": 0.3,
    "warm": 0.3, "shine": 0.4, "contrast": 0.2, "saturation": 0.2, "clarity": 0.3, "sharpen": 0.3,
    "dark_circles": 0.5, "folds": 0.4, "eye_bright": 0.5, "teeth": 0.5, "slim": 0.3, "narrow": 0.2,
    "small": 0.2, "cheekbone": 0.2, "chin": 0.2, "forehead": 0.2, "eyes": 0.3, "eye_tilt": 0.2,
    "nose": 0.3, "nose_len": 0.2, "mouth": 0.2, "smile": 0.3, "plump": 0.3, "lips": 0.5,
    "gloss": 0.4, "blush": 0.5, "contour": 0.5, "highlight": 0.5, "brows": 0.4, "liner": 0.5,
    "shadow": 0.5, "denoise": 0.2,
}  # fmt: skip


@cache
def get_scene(face_px=250):
    """Return a 720p frame (not to be written to) and its face."""
    frame = create_face_frame(face_px)
    # Around the picture its mirror images go on: the middle one is meant.
    faces = analyse(frame).faces
    face = min(faces, key=lambda f: abs(f.track.box.x0 + f.track.box.x1 - frame.width))
    assert face.mesh is not None
    frame.buffer.setflags(write=False)
    return frame, face


@cache
def get_close_scene():
    """Return the middle of the scene: as good, and less to copy and compare."""
    frame, face = get_scene()
    x0, y0, x1, y1 = 384, 96, 896, 624
    close = create_frame(x1 - x0, y1 - y0)
    close.y[:] = frame.y[y0:y1, x0:x1]
    for part, plane in ((close.u, frame.u), (close.v, frame.v)):
        part[:] = plane[y0 // 2 : y1 // 2, x0 // 2 : x1 // 2]
    close.buffer.setflags(write=False)
    return close, Face(face.track, mesh=(face.mesh - [x0, y0, 0]).astype(np.float32))


def copy_frame(frame):
    copy = create_frame(frame.width, frame.height)
    copy.buffer[:] = frame.buffer
    copy.colour = frame.colour
    return copy


def make_up(frame, face, values, *, painter=None, sitter=None):
    """Return a copy of `frame` with `values` done to `face`."""
    copy = copy_frame(frame)
    amounts = resolve_amounts(values, frame.colour)
    painter = painter or BeautyPainter()
    painter.paint(copy, face, amounts, sitter or Sitter(), 1 / 30)
    return copy


def measure(frame, face):
    return measure_face(face.mesh, (frame.width, frame.height), None)


def move_face(face, change):
    """Return `face` with `change` done to a copy of its mesh."""
    mesh = face.mesh.copy()
    changed = change(mesh)
    return Face(face.track, mesh=mesh if changed is None else changed)


def differ(frame, other):
    """Return |Y|, |U|, |V| differences as int arrays."""
    return [
        np.abs(a.astype(np.int32) - b.astype(np.int32))
        for a, b in ((frame.y, other.y), (frame.u, other.u), (frame.v, other.v))
    ]


def sample(plane, points, radius=2):
    """Return the mean of `plane` around each of (n, 2) points, all together."""
    values = []
    for x, y in np.rint(points).astype(int):
        values.append(plane[y - radius : y + radius + 1, x - radius : x + radius + 1].mean())
    return float(np.mean(values))


@cache
def list_mirrored():
    """Return, for each of the 468 points, the one on the other side."""
    flipped = UV * [-1, 1] + [1, 0]
    away = np.linalg.norm(flipped[:, None] - UV[None], axis=2)
    return away.argmin(axis=1)
