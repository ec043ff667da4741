"""What changed in a picture, cheaply: the mean luma of some two thousand cells, compared.

A cell's mean is nearly free of noise, so a small level tells a person who steps in from grain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.face import Box
from livefuse.pipeline.planes import shrink_plane

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LONG_SIDE: Final = 64
_CUT_CORRELATION: Final = 0.4
_CUT_LEVEL: Final = 12.0
_FLAT: Final = 1.0
_MIN_CELLS: Final = 4
_FACE_MARGIN: Final = 0.25
_HABIT_MARGIN: Final = 1.25
_BODY_HEIGHTS: Final = 3.0
_FORGETTING: Final = 0.98  # a detection


def compute_cells(luma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the mean luma of each of about 64 x 36 cells of `luma`."""
    height, width = luma.shape
    scale = _LONG_SIDE / max(width, height)
    size = (max(2, round(width * scale)), max(2, round(height * scale)))
    cells = np.empty((size[1], size[0]), np.uint8)
    shrink_plane(luma, cells)
    return cells.astype(np.float32)


def is_cut(before: NDArray[np.float32], after: NDArray[np.float32]) -> bool:
    """Say whether `after` shows something else than `before` (cells of two pictures in a row).

    By structure, so that a flash or a fade is no cut.
    """
    if float(np.abs(after - before).mean()) < _CUT_LEVEL:
        return False
    one, other = before - before.mean(), after - after.mean()
    spread = float(np.sqrt((one * one).mean() * (other * other).mean()))
    if spread < _FLAT:
        return True
    return float((one * other).mean()) < _CUT_CORRELATION * spread


def _add_margin(face: Box) -> Box:
    x, y = _FACE_MARGIN * face.width, _FACE_MARGIN * face.height
    return Box(face.x0 - x, face.y0 - y, face.x1 + x, face.y1 + y)


def _guess_body(face: Box) -> Box:
    """Return where shoulders and arms of `face` are: below the chin; beside it heads appear."""
    x0, x1 = face.x0 - face.width, face.x1 + face.width
    return Box(x0, face.y1, x1, face.y1 + _BODY_HEIGHTS * face.height)


class ChangeWatch:
    """Says when something changed outside the known faces since the last detection.

    A clock in the corner, a ticker, a tree in the wind change all the time: cells whose changes
    turned out to hold no new face need a larger one to count again, for some seconds.
    """

    def __init__(self, level: float) -> None:
        """`level` is in grey levels of a cell's mean."""
        self._level = level
        self._seen = np.zeros((0, 0), np.float32)
        self._habit = np.zeros((0, 0), np.float32)
        self._alarmed: NDArray[np.bool_] | None = None
        self._change = np.zeros((0, 0), np.float32)

    def has_newcomer(
        self, cells: NDArray[np.float32], known: list[Box], *, with_bodies: bool = False
    ) -> bool:
        """Compare with the last detected picture; `known` faces are fractions of the picture.

        With `with_bodies` what moves below a known face is taken for its shoulders and arms:
        somebody who steps in before them is found by the next look that is due.
        """
        self._alarmed = None
        if cells.shape != self._seen.shape:
            return True
        change = cells - self._seen
        # The median is the light's change, not a person's.
        self._change = np.abs(change - np.median(change))
        is_new = self._change > self._level + self._habit
        rows, columns = is_new.shape
        bodies = [_guess_body(box) for box in known] if with_bodies else []
        for box in (*map(_add_margin, known), *bodies):
            top, bottom = int(max(box.y0, 0) * rows), int(max(box.y1, 0) * rows) + 1
            left, right = int(max(box.x0, 0) * columns), int(max(box.x1, 0) * columns) + 1
            is_new[top:bottom, left:right] = False
        if int(np.count_nonzero(is_new)) < _MIN_CELLS:
            return False
        self._alarmed = is_new
        return True

    def note_detection(self, cells: NDArray[np.float32], *, found_new: bool) -> None:
        """Remember what the detector saw, and whether it found a face that was not known."""
        if cells.shape != self._seen.shape:
            self._habit = np.zeros_like(cells)
        self._habit *= _FORGETTING
        if self._alarmed is not None and not found_new:
            usual = _HABIT_MARGIN * self._change - self._level
            np.maximum(self._habit, usual, out=self._habit, where=self._alarmed)
        self._alarmed = None
        self._seen = cells
