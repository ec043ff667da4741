"""The mesh swap: one source on one wearer in other light, sizes and turns; before and after.

The source is the photo with painted features (tests/sheets/_people.py): no second person's photo
is in the tree.
"""

from __future__ import annotations

import zlib
from functools import cache

import cv2
import msgspec
import numpy as np

from livefuse.face import Box, Face, SourceFace, Track
from livefuse.frame import Colour
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.effects.mesh_swap import MeshSwapper
from livefuse.pipeline.state import FrameState
from livefuse.token import create_token
from tests.faces import create_frame_by_bgr, read_bgr
from tests.sheets._grid import lay_out
from tests.sheets._people import create_other_person, find_mesh, place_photo, relight

LIGHTS = ("plain", "window", "side", "dim", "cold", "mono", "soft", "noisy")
SIDE = 300  # px of a head
FRAMES = 20  # until contrast, sharpness and grain have settled


def create_swapper(source=None, *, grain=True):
    """Return a fresh swapper of `source` (BGR, mesh), by default the painted person."""
    bgr, mesh = source or create_other_person()
    swapper = MeshSwapper(lambda _: mesh, InlineExecutor(), grain=grain)
    if source is None:
        swapper._source = _share_source()
    else:
        _prepare(swapper, bgr)
    return swapper


@cache
def _share_source():
    """Return the painted person's textures: built once, they are the dear part."""
    bgr, mesh = create_other_person()
    swapper = MeshSwapper(lambda _: mesh, InlineExecutor())
    _prepare(swapper, bgr)
    return swapper._source


def _prepare(swapper, bgr):
    rgb = np.ascontiguousarray(bgr[:, :, ::-1])
    swapper.prepare(SourceFace("other", rgb, "0" * 64))


def create_face(mesh, track_id=1):
    """Return a face that align would have made of `mesh`."""
    low, high = mesh[:, :2].min(axis=0), mesh[:, :2].max(axis=0)
    points5 = np.ascontiguousarray(mesh[[33, 263, 1, 61, 291], :2])
    box = Box(*low.tolist(), *high.tolist())
    return Face(Track(track_id, box, points5, 1.0, 0.0), mesh=mesh)


def create_state(frame, faces, blend_ratio=1.0):
    """Return a working state that asks for a swap."""
    token = create_token(("detect", "align"), now_epoch_s=0.0)
    parameters = msgspec.structs.replace(token.parameters, blend_ratio=blend_ratio)
    return FrameState(frame, msgspec.structs.replace(token, parameters=parameters), faces=faces)


def swap_picture(swapper, bgr, mesh, *, frames=FRAMES, blend_ratio=1.0, track_id=1):
    """Return the last of `frames` equal frames, swapped; None when the swapper declined it."""
    frame, done = create_frame_by_bgr(bgr), False
    for _ in range(frames):
        frame = create_frame_by_bgr(bgr)
        frame.colour = Colour("bt601")
        face = create_face(mesh, track_id)
        done = swapper.swap(create_state(frame, [face], blend_ratio), face)
    return read_bgr(frame) if done else None


def draw_sheet():
    """Return the sheet: each cell a wearer before and after."""
    swapper = create_swapper()
    source, source_mesh = create_other_person()
    plain = place_photo(270, (900, 900))
    mesh = find_mesh(plain)
    cells = [
        (
            "the source",
            np.hstack([_cut(source, source_mesh), np.full((SIDE, SIDE, 3), 32, np.uint8)]),
        )
    ]
    cells += [_pair(swapper, relight(plain, light), mesh, light) for light in LIGHTS]
    for degrees in (-30, 40):
        bgr = place_photo(250, (900, 900), roll=np.radians(degrees))
        cells.append(_pair(swapper, bgr, find_mesh(bgr), f"turned {degrees} degrees"))
    for face_px in (400, 150, 90, 56):
        bgr = place_photo(face_px, (900, 900))
        cells.append(_pair(swapper, bgr, find_mesh(bgr), f"{face_px} px wide"))
    return lay_out(cells, 3, 2 * SIDE)


def _pair(swapper, bgr, mesh, text):
    after = swap_picture(swapper, bgr, mesh, track_id=zlib.crc32(text.encode()))
    assert after is not None, text
    return text, np.hstack([_cut(bgr, mesh), _cut(after, mesh)])


def _cut(bgr, mesh):
    """Return the head as a square of SIDE px."""
    face_px = float(np.linalg.norm(mesh[454] - mesh[234]))
    x, y = mesh[:, :2].mean(axis=0).tolist()
    scale = SIDE / (1.9 * face_px)
    matrix = np.array([[scale, 0, SIDE / 2 - scale * x], [0, scale, SIDE * 0.53 - scale * y]])
    flags = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return cv2.warpAffine(bgr, matrix, (SIDE, SIDE), flags=flags)
