"""Small pictures in a region of Y, U, V: drawn at full size, laid in softly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.planes import convert_colour

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour
    from livefuse.pipeline.effects.mesh_render import Layers

    Values = NDArray[np.float32]
    Rgb = tuple[float, float, float]
    Part = tuple[int, int, int, int]  # x0, y0, x1, y1, even

_SHIFT: Final = 4


def to_yuv(rgb: Rgb, colour: Colour) -> tuple[float, float, float]:
    """Return the colour's Y, U, V for frames of `colour`."""
    y, u, v = convert_colour((round(rgb[0]), round(rgb[1]), round(rgb[2])), colour)
    return float(y), float(u), float(v)


def cut_box(layers: Layers, outline: Values, pad: float) -> Part | None:
    """Return the even box around `outline` within the region, or None."""
    height, width = layers.luma.shape
    low, high = outline.min(axis=0) - pad, outline.max(axis=0) + pad
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1, y1 = min(int(high[0]) // 2 * 2 + 2, width), min(int(high[1]) // 2 * 2 + 2, height)
    return (x0, y0, x1, y1) if x1 - x0 >= 2 and y1 - y0 >= 2 else None  # noqa: PLR2004 - a chroma px


def draw_polygon(outline: Values, box: Part) -> Values:
    """Return the polygon's share 0..1 of each px of the box."""
    x0, y0, x1, y1 = box
    share = np.zeros((y1 - y0, x1 - x0), np.uint8)
    fixed = np.rint((outline - (x0, y0)) * (1 << _SHIFT)).astype(np.int32)
    cv2.fillPoly(share, [fixed], 255, cv2.LINE_AA, _SHIFT)
    return share.astype(np.float32) * np.float32(1 / 255)


def draw_line(points: Values, width: int, box: Part) -> Values:
    """Return the line's share 0..1 of each px of the box; `width` in px."""
    x0, y0, x1, y1 = box
    share = np.zeros((y1 - y0, x1 - x0), np.uint8)
    fixed = np.rint((points - (x0, y0)) * (1 << _SHIFT)).astype(np.int32)
    cv2.polylines(share, [fixed], isClosed=False, color=255, thickness=width,
                  lineType=cv2.LINE_AA, shift=_SHIFT)  # fmt: skip
    return share.astype(np.float32) * np.float32(1 / 255)


def blend(layers: Layers, box: Part, share: Values, yuv: Values) -> None:
    """Lay `yuv` (rows, columns, 3) of the box into the layers where `share` says."""
    x0, y0, x1, y1 = box
    _mix(layers.luma[y0:y1, x0:x1], yuv[:, :, 0], share)
    size = ((x1 - x0) // 2, (y1 - y0) // 2)
    half = np.asarray(cv2.resize(yuv, size, interpolation=cv2.INTER_AREA), np.float32)
    half_share = np.asarray(cv2.resize(share, size, interpolation=cv2.INTER_AREA), np.float32)
    rows, columns = slice(y0 // 2, y1 // 2), slice(x0 // 2, x1 // 2)
    for index, plane in ((1, layers.u), (2, layers.v)):
        _mix(plane[rows, columns], half[:, :, index], half_share)


def _mix(plane: NDArray[np.uint8], values: Values, share: Values) -> None:
    mixed = plane + (values - plane) * share
    plane[:] = np.clip(np.rint(mixed), 0, 255)
