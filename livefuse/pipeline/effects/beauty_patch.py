"""Small boxes of a face at working scale: lips, eyes and brows are too fine for the coarse grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import blur_box, enlarge
from livefuse.pipeline.effects.beauty_geometry import SHIFT, to_fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_canvas import Canvas, Floats

_SMALLEST = 4


class Patch(NamedTuple):
    """A box of the working grid, px; all four are even."""

    x: int
    y: int
    width: int
    height: int

    @property
    def box(self) -> tuple[slice, slice]:
        """Rows and columns at working scale."""
        return slice(self.y, self.y + self.height), slice(self.x, self.x + self.width)

    @property
    def coarse(self) -> tuple[slice, slice]:
        """Rows and columns of the coarse grid."""
        return (
            slice(self.y // 2, (self.y + self.height) // 2),
            slice(self.x // 2, (self.x + self.width) // 2),
        )


def cut_patch(canvas: Canvas, points: NDArray[np.float32], margin_mm: float) -> Patch | None:
    """Return the box around `points` (working px) with a margin; None when it leaves the region."""
    margin = margin_mm * canvas.geometry.mm_work + 2.0
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    width, height = canvas.grid.work
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1, y1 = min((int(high[0]) + 3) // 2 * 2, width), min((int(high[1]) + 3) // 2 * 2, height)
    if x1 - x0 < _SMALLEST or y1 - y0 < _SMALLEST:
        return None
    return Patch(x0, y0, x1 - x0, y1 - y0)


def fill_polygons(
    patch: Patch, polygons: list[tuple[NDArray[np.float32], float]], blur_px: int
) -> Floats:
    """Return a soft mask (patch) of (points in working px, weight 0..1) pairs."""
    drawn = np.zeros((patch.height, patch.width), np.uint8)
    corner = np.array([patch.x, patch.y], np.float32)
    for points, weight in polygons:
        level = round(255 * weight)
        cv2.fillPoly(drawn, [to_fixed(points - corner)], level, lineType=cv2.LINE_AA, shift=SHIFT)
    soft = drawn.astype(np.float32)
    soft *= np.float32(1 / 255)
    return blur_box(soft, blur_px)


def read_chroma(canvas: Canvas, patch: Patch) -> tuple[Floats, Floats]:
    """Return U and V of the patch at working scale."""
    k = canvas.grid.k
    rows = slice(patch.y * k // 2, (patch.y + patch.height) * k // 2)
    columns = slice(patch.x * k // 2, (patch.x + patch.width) * k // 2)
    way = cv2.INTER_AREA if k > 2 else cv2.INTER_LINEAR  # noqa: PLR2004 - chroma's own scale
    u, v = (
        cv2.resize(plane[rows, columns], (patch.width, patch.height), interpolation=way)
        for plane in (canvas.u, canvas.v)
    )
    return u.astype(np.float32), v.astype(np.float32)


def add_chroma(canvas: Canvas, patch: Patch, change_u: Floats, change_v: Floats) -> None:
    """Add changes of the patch's U and V (working scale) to the planes, in place."""
    k = canvas.grid.k
    rows = slice(patch.y * k // 2, (patch.y + patch.height) * k // 2)
    columns = slice(patch.x * k // 2, (patch.x + patch.width) * k // 2)
    way = cv2.INTER_AREA if k == 1 else cv2.INTER_LINEAR
    for plane, change in ((canvas.u, change_u), (canvas.v, change_v)):
        part = plane[rows, columns]
        held = hold_back(canvas, patch, change)
        scaled = cv2.resize(held, (part.shape[1], part.shape[0]), interpolation=way)
        cv2.add(part, scaled, dst=part, dtype=cv2.CV_8U)


def hold_back(canvas: Canvas, patch: Patch, change: Floats) -> Floats:
    """Return `change` without what stands before the face."""
    if canvas.visible is None:
        return change
    return change * enlarge(canvas.visible[patch.coarse], (patch.width, patch.height))


def find_median(values: NDArray[np.float32]) -> float:
    """Return the median, ten times quicker than NumPy's on few values; 0 of none."""
    flat = values.reshape(-1)
    if not flat.size:
        return 0.0
    return float(np.partition(flat, flat.size // 2)[flat.size // 2])
