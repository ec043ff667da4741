"""The picture of the README: one face, before and after."""

from __future__ import annotations

import msgspec
import numpy as np

from livefuse.looks import load_look
from livefuse.token import Parameters, create_token
from tests.faces import create_face_frame, create_pipeline, read_bgr
from tests.sheets._grid import lay_out

_SIZE = (720, 720)
_FACE_PX = 230
_FRAMES = 12  # until fades and ramps are over


def draw_sheet():
    """Return BGR."""
    look = Parameters(beautify=load_look("soft_japanese"))
    whole = Parameters(blend_ratio=1.0)
    rows = [
        ("before", (), "", whole),
        ("blur", ("detect", "blur"), "", whole),
        ("swap avatar:fox", ("detect", "align", "swap"), "avatar:fox", whole),
        ("swap avatar:robot", ("detect", "align", "swap"), "avatar:robot", whole),
        ("swap avatar:porcelain", ("detect", "align", "swap"), "avatar:porcelain", whole),
        ("look soft_japanese", ("detect", "align", "beautify"), "", look),
    ]
    return lay_out([(text, draw(*row)) for text, *row in rows], 3, 400)


def draw(operations, source_face, parameters):
    """Return what a stream shows after a while, BGR."""
    token = msgspec.structs.replace(
        create_token(operations, now_epoch_s=0.0), source_face=source_face, parameters=parameters
    )
    pipeline = create_pipeline()
    pipeline.prepare(token)
    frame = create_face_frame(_FACE_PX, _SIZE)
    for index in range(_FRAMES):
        frame = create_face_frame(_FACE_PX, _SIZE, place=(0.5, 0.48), pts=3000 * index)
        outcome = pipeline.process(frame, token)
        assert outcome.vouched, outcome.error
    return np.ascontiguousarray(read_bgr(frame))
