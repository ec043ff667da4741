"""Every parameter by itself, strong, on the astronaut: the first cell is the input."""

from __future__ import annotations

from livefuse.beauty import PARAMETERS
from tests.sheets._beauty import crop_face, get_face, make_up
from tests.sheets._grid import lay_out

_STRONG = 0.8
_FACE_PX = 300


def list_values():
    """Return (name, values) of each parameter, both ends of those that have two."""
    for name, row in PARAMETERS.items():
        if row.kind == "master":
            continue
        if name == "texture":
            yield "smooth, texture 0", {"smooth": _STRONG, "texture": 0.0}
            continue
        for amount in (_STRONG, -_STRONG) if row.low < 0 else (_STRONG,):
            values = {name: amount}
            if name == "gloss":
                values["lips"] = 0.5
            yield f"{name} {amount:+.1f}", values


def draw_sheet():
    frame, face = get_face(_FACE_PX)
    pictures = [("input", crop_face(make_up(frame, face, {}), face, 0.62))]
    pictures += [
        (text, crop_face(make_up(frame, face, values), face, 0.62))
        for text, values in list_values()
    ]
    return lay_out(pictures, 7, 270)
