"""The invisible mark: unmarked, marked, the difference sixteenfold; and a pan in time."""

from __future__ import annotations

import cv2
import numpy as np

from livefuse.publish.luma.embed import LumaMark
from tests.mark_scenes import SCENES, list_frames

_SCENES = ("still_face", "flat_grey", "text_white", "head_dark")
_PART = (460, 200, 420, 300)
_AMPLIFIED = 16
_ROW = 60


def _cut(plane):
    x, y, width, height = _PART
    return plane[y : y + height, x : x + width]


def _draw_row(name):
    (frame,) = list_frames(SCENES[name], 1)
    before = frame.y.copy()
    LumaMark(1, 2).draw(frame)
    change = np.clip(128 + _AMPLIFIED * (frame.y.astype(int) - before), 0, 255).astype(np.uint8)
    return np.hstack([_cut(before), _cut(frame.y), _cut(change)])


def _draw_pan():
    """One row of px over 60 frames of a pan, unmarked above marked, contrast threefold.

    What stands still while the picture moves (a dirty window) would be vertical lines.
    """
    mark, bare, marked = LumaMark(1, 2), [], []
    for frame in list_frames(SCENES["face_pan"], 60):
        bare.append(frame.y[_ROW, : 3 * _PART[2]].copy())
        mark.draw(frame)
        marked.append(frame.y[_ROW, : 3 * _PART[2]].copy())
    lines = [np.repeat(np.stack(rows), 3, axis=0) for rows in (bare, marked)]
    return np.clip((np.vstack(lines).astype(int) - 160) * 3 + 128, 0, 255).astype(np.uint8)


def draw_sheet():
    """Return the sheet, BGR."""
    sheet = np.vstack([*map(_draw_row, _SCENES), _draw_pan()])
    return cv2.cvtColor(np.ascontiguousarray(sheet), cv2.COLOR_GRAY2BGR)
