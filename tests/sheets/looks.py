"""Every look on the astronaut, at 250 and 420 px; the first cell is the input."""

from __future__ import annotations

from livefuse.looks import list_looks
from tests.sheets._beauty import crop_face, get_face, make_up
from tests.sheets._grid import lay_out


def draw_sheet():
    pictures = []
    for face_px in (250, 420):
        frame, face = get_face(face_px)
        pictures += [
            (
                f"{look.name}, {face_px} px",
                crop_face(make_up(frame, face, look.parameters), face, 0.6),
            )
            for look in sorted(list_looks(), key=lambda look: look.name != "none")
        ]
    return lay_out(pictures, 4, 420)
