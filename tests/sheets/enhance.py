"""The classical enhancer on the astronaut: before, half, whole; and grain taken."""

from __future__ import annotations

import numpy as np

from livefuse.pipeline.effects.enhance_classical import ClassicalEnhancer
from livefuse.pipeline.state import FrameState
from livefuse.token import Token
from tests.faces import read_bgr
from tests.sheets._beauty import copy_frame, crop_face, get_face, make_up
from tests.sheets._grid import lay_out

_TOKEN = Token(request_id="sheet", operations=("detect", "align", "enhance"))


def _enhance(frame, face, amount):
    state = FrameState(copy_frame(frame), _TOKEN, faces=[face])
    ClassicalEnhancer().enhance(state, face, amount)
    return read_bgr(state.frame)


def _add_grain(frame):
    noise = np.random.default_rng(1)
    grainy = copy_frame(frame)
    for plane, sigma in ((grainy.y, 6), (grainy.u, 5), (grainy.v, 5)):
        plane[:] = np.clip(plane + noise.normal(0, sigma, plane.shape), 0, 255).astype(np.uint8)
    return grainy


def draw_sheet():
    pictures = []
    for face_px in (120, 250):
        frame, face = get_face(face_px)
        pictures += [
            (f"enhance {amount}, {face_px} px", crop_face(_enhance(frame, face, amount), face, 0.6))
            for amount in (0.0, 0.5, 1.0)
        ]
    frame, face = get_face(250)
    grainy = _add_grain(frame)
    for text, values in (
        ("grain", {}),
        ("denoise 0.3", {"denoise": 0.3}),
        ("0.8", {"denoise": 0.8}),
    ):
        pictures.append((text, crop_face(make_up(grainy, face, values), face, 0.6)))
    return lay_out(pictures, 3, 480)
