"""Taking the camera's grain from a face, on the frame's px, before all else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_geometry import SHIFT, FaceGeometry, to_fixed
from livefuse.pipeline.topology import OVAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_canvas import Buffers, Floats

_SIDE_PX: Final = 5
_INNER_SHARE: Final = 0.88  # of the oval: jaw and hairline stay sharp
_INNER_BLUR_MM: Final = 5.0
_OUTER_BLUR_MM: Final = 7.0
_LOWEST_EPS: Final = 6.0
_EPS: Final = 120.0


def reduce_noise(
    planes: list[NDArray[np.uint8]], geometry: FaceGeometry, amount: float, buffers: Buffers
) -> None:
    """Smooth grain within the face, in place: luma by a guided filter, chroma by a box.

    The chroma part does most of the visible good. `planes` are the region's Y, U, V.
    """
    corner = np.array([geometry.grid.x, geometry.grid.y], np.float32)
    oval = geometry.points[OVAL] - corner
    middle = oval.sum(axis=0) / len(oval)
    inner = middle + (oval - middle) * np.float32(_INNER_SHARE)
    _smooth_luma(planes[0], inner, geometry.mm, amount, buffers)
    for plane in planes[1:]:
        _smooth_chroma(
            plane, (oval - np.float32(0.5)) * np.float32(0.5), geometry.mm / 2, amount, buffers
        )


def _smooth_luma(
    plane: NDArray[np.uint8], oval: Floats, mm: float, amount: float, buffers: Buffers
) -> None:
    box = _bound(oval, _INNER_BLUR_MM * mm, plane.shape)
    part = plane[box]
    if not part.size:
        return
    height, width = part.shape
    names = ("luma", "mean", "square", "change")
    luma, mean, square, change = (buffers.get_floats(f"grain_{n}", height, width) for n in names)
    luma[:] = part
    side = (_SIDE_PX, _SIDE_PX)
    rim = cv2.BORDER_REPLICATE
    cv2.blur(luma, side, dst=mean, borderType=rim)
    cv2.sqrBoxFilter(part, cv2.CV_32F, side, dst=square, borderType=rim)
    cv2.multiply(mean, mean, dst=change)
    cv2.subtract(square, change, dst=square)
    # a = variance / (variance + eps); what is taken is (1 - a) (luma - mean), both averaged.
    eps = _LOWEST_EPS + _EPS * amount * amount
    np.add(square, np.float32(eps), out=change)
    np.divide(np.float32(eps), change, out=change)
    cv2.blur(change, side, dst=change, borderType=rim)
    cv2.subtract(mean, luma, dst=mean)
    cv2.multiply(mean, change, dst=change)
    weight = _draw_weight(oval, box, part.shape, _INNER_BLUR_MM * mm)
    cv2.multiply(change, weight, dst=change, scale=_ease(amount), dtype=cv2.CV_32F)
    cv2.add(part, change, dst=part, dtype=cv2.CV_8U)


def _smooth_chroma(
    plane: NDArray[np.uint8], oval: Floats, mm: float, amount: float, buffers: Buffers
) -> None:
    box = _bound(oval, _OUTER_BLUR_MM * mm, plane.shape)
    part = plane[box]
    if not part.size:
        return
    height, width = part.shape
    side = 2 * round(1 + 3 * amount) + 1
    smooth = buffers.get_bytes("grain_chroma", height, width)
    cv2.blur(part, (side, side), dst=smooth, borderType=cv2.BORDER_REPLICATE)
    weight = _draw_weight(oval, box, part.shape, _OUTER_BLUR_MM * mm)
    change = buffers.get_floats("grain_change", height, width)
    cv2.subtract(smooth, part, dst=change, dtype=cv2.CV_32F)
    cv2.multiply(change, weight, dst=change, scale=_ease(amount), dtype=cv2.CV_32F)
    cv2.add(part, change, dst=part, dtype=cv2.CV_8U)


def _ease(amount: float) -> float:
    """Return the scale of a byte weight: small amounts come in from nothing."""
    return min(amount / 0.1, 1.0) / 255.0


def _bound(oval: Floats, margin: float, shape: tuple[int, ...]) -> tuple[slice, slice]:
    low = np.maximum(oval.min(axis=0) - margin, 0.0).astype(int)
    high = np.minimum(oval.max(axis=0) + margin + 1.0, (shape[1], shape[0])).astype(int)
    return slice(low[1], max(high[1], low[1])), slice(low[0], max(high[0], low[0]))


def _draw_weight(
    oval: Floats, box: tuple[slice, slice], shape: tuple[int, ...], blur_px: float
) -> NDArray[np.uint8]:
    """Return the soft oval, drawn at a quarter of the size: it is soft."""
    height, width = max(shape[0] // 4, 1), max(shape[1] // 4, 1)
    small = np.zeros((height, width), np.uint8)
    corner = np.array([box[1].start, box[0].start], np.float32)
    scale = np.array([width / shape[1], height / shape[0]], np.float32)
    points = (oval - corner + np.float32(0.5)) * scale - np.float32(0.5)
    cv2.fillPoly(small, [to_fixed(points)], 255, shift=SHIFT)
    side = 2 * max(round(blur_px / 8), 1) + 1
    cv2.blur(small, (side, side), dst=small, borderType=cv2.BORDER_CONSTANT)
    large = np.empty((shape[0], shape[1]), np.uint8)
    cv2.resize(small, (shape[1], shape[0]), dst=large, interpolation=cv2.INTER_LINEAR)
    return large
