"""Covering a whole picture: what is shown of a frame that may not be seen. Cheap at any size.

The picture is reduced to 16 cells along its long side, so that even a face that fills it is a
handful of cells, and drawn smoothly from these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2

if TYPE_CHECKING:
    from livefuse.frame import Frame

_CELLS: Final = 16
_SOFTEN_SIGMA: Final = 0.6
_GREY: Final = 128
_SLATE: Final = 64


def cover_frame(frame: Frame) -> None:
    """Hide the whole of `frame` in place.

    When even that fails the frame turns grey: it is never left as it was.
    """
    try:
        _blur_planes(frame)
    except Exception:  # noqa: BLE001 - whatever happened, nothing of the picture may remain
        frame.buffer.fill(_GREY)


def draw_slate(frame: Frame) -> None:
    """Make `frame` an even dark grey, in place: seen to be no picture, and not black."""
    frame.y.fill(_SLATE)
    frame.u.fill(_GREY)
    frame.v.fill(_GREY)


def _blur_planes(frame: Frame) -> None:
    scale = _CELLS / max(frame.width, frame.height)
    columns, rows = max(2, round(frame.width * scale)), max(2, round(frame.height * scale))
    for plane in (frame.y, frame.u, frame.v):
        height, width = plane.shape
        small = plane
        # By halves: OpenCV averages 2 x 2 many times faster than larger cells.
        while small.shape[0] >= 4 * rows and small.shape[1] >= 4 * columns:
            half = (small.shape[1] // 2, small.shape[0] // 2)
            small = cv2.resize(
                small[: 2 * half[1], : 2 * half[0]], half, interpolation=cv2.INTER_AREA
            )  # type: ignore[assignment] # uint8 stays uint8
        cells = cv2.resize(small, (columns, rows), interpolation=cv2.INTER_AREA)
        smooth = cv2.GaussianBlur(cells, (3, 3), _SOFTEN_SIGMA)
        cv2.resize(smooth, (width, height), dst=plane, interpolation=cv2.INTER_LINEAR)
