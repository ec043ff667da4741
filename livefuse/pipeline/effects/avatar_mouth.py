"""An avatar's mouth: what is seen in it when it opens. Painted in Y, U, V, region only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.avatar_patch import (
    blend,
    cut_box,
    draw_line,
    draw_polygon,
    to_yuv,
)
from livefuse.pipeline.topology import LIPS_INNER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour
    from livefuse.pipeline.effects.avatar_patch import Part, Rgb
    from livefuse.pipeline.effects.mesh_render import Layers

    Values = NDArray[np.float32]
    Yuv = tuple[float, float, float]

_OPEN: Final = 0.012  # of the face's width
_BAR: Final = 0.036  # of the mouth's width: half a bar
_GLOW: Final = 4.0  # half bars: how far its light reaches


class MouthStyle(NamedTuple):
    """The inside of an open mouth: its depth, and what is seen in it; `bars` are lamps."""

    depth: Rgb
    tongue: Rgb | None = None
    fangs: Rgb | None = None
    bars: Rgb | None = None


class PaintedMouth(NamedTuple):
    """A mouth's colours as Y, U, V for frames of one colour; None is not there."""

    depth: Yuv
    tongue: Yuv | None
    fangs: Yuv | None
    bars: Yuv | None


def convert_mouth(style: MouthStyle, colour: Colour) -> PaintedMouth:
    """Return the style for frames of `colour`."""
    tongue, fangs, bars = (
        to_yuv(rgb, colour) if rgb is not None else None
        for rgb in (style.tongue, style.fangs, style.bars)
    )
    return PaintedMouth(to_yuv(style.depth, colour), tongue, fangs, bars)


def paint_mouth(layers: Layers, points: Values, face_px: float, painted: PaintedMouth) -> bool:
    """Paint the inside of an open mouth in place and make it opaque; False when it is closed.

    A closed mouth is made opaque too: the mesh has no triangles there.
    """
    outline = np.asarray(points[LIPS_INNER, :2], np.float32)
    box = cut_box(layers, outline, 4.0)
    if box is None:
        return False
    x0, y0, x1, y1 = box
    share = draw_polygon(outline, box)
    hole = draw_line(np.vstack([outline, outline[:1]]), 3, box)
    alpha = layers.alpha[y0:y1, x0:x1]
    np.maximum(alpha, (np.maximum(share, hole) * 255).astype(np.uint8), out=alpha)
    gap = float(np.linalg.norm(points[13] - points[14]))
    colours = np.empty((y1 - y0, x1 - x0, 3), np.float32)
    colours[:] = painted.depth
    is_open = gap >= _OPEN * face_px
    if is_open:
        _fill_mouth(colours, outline, painted, box)
    share = cv2.GaussianBlur(np.maximum(share, 0.6 * hole), (0, 0), max(0.5, 0.004 * face_px))
    blend(layers, box, np.asarray(share, np.float32), colours)
    return is_open


def _fill_mouth(
    colours: Values,
    outline: Values,
    painted: PaintedMouth,
    box: Part,
) -> None:
    """Put tongue, teeth and fangs in, in places that go with the lips."""
    left, right = outline[0], outline[10]
    top, low = outline[5], outline[15]
    width, gap = max(float(np.hypot(*(right - left))), 1.0), float(np.hypot(*(low - top)))
    if painted.tongue is not None:
        tongue = low + (top - low) * 0.12
        _dab(colours, tongue, (0.26 * width, 0.42 * gap + 1.0), painted.tongue, box)
    if painted.bars is not None:
        _draw_bars(colours, outline, painted.bars, box)
    if painted.fangs is not None:
        down = (low - top) / max(gap, 1e-3)
        across = (right - left) / width
        long = min(0.55 * gap, 0.13 * width)
        for index in (3, 7):
            root = outline[index]
            shape = np.stack(
                [root - across * 0.045 * width, root + across * 0.045 * width, root + down * long]
            )
            share = draw_polygon(np.asarray(shape, np.float32), box)[..., None]
            colours += (np.array(painted.fangs, np.float32) - colours) * share


def _draw_bars(colours: Values, outline: Values, yuv: Yuv, box: Part) -> None:
    """Draw upright lamps across the mouth, as high as it is open there: a voice made visible."""
    x0, y0, x1, y1 = box
    half_width = max(_BAR * float(np.hypot(*(outline[10] - outline[0]))), 0.7)
    for index in range(1, 10):
        top, low = outline[index], outline[20 - index]
        middle = (top + low) / 2
        half_height = max(0.33 * float(np.hypot(*(low - top))), 0.7)
        left = min(max(int(middle[0] - _GLOW * half_width), x0), x1)
        right = min(max(int(middle[0] + _GLOW * half_width) + 2, left), x1)
        x = (np.arange(left, right, dtype=np.float32) - middle[0]) / half_width
        y = (np.arange(y0, y1, dtype=np.float32) - middle[1]) / half_height
        share = np.clip(1.5 - np.maximum(np.abs(x)[None, :], np.abs(y)[:, None]), 0, 1)
        glow = np.exp(-x * x / 8)[None, :] * (0.28 * np.exp(-y * y / 2.8))[:, None]
        part = colours[:, left - x0 : right - x0]
        part += (np.array(yuv, np.float32) - part) * np.maximum(share, glow)[..., None]


def _dab(
    colours: Values,
    middle: Values,
    radii: tuple[float, float],
    yuv: Yuv,
    box: Part,
) -> None:
    x0, y0, x1, y1 = box
    x = (np.arange(x0, x1, dtype=np.float32) - middle[0]) / np.float32(radii[0])
    y = (np.arange(y0, y1, dtype=np.float32) - middle[1]) / np.float32(radii[1])
    share = np.clip(1.6 - 1.3 * np.sqrt(y[:, None] ** 2 + x[None, :] ** 2), 0, 1)[..., None]
    colours += (np.array(yuv, np.float32) - colours) * share
