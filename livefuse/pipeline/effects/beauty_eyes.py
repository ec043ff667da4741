"""Eyes, brows and the line on the lids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import clip, enlarge
from livefuse.pipeline.effects.beauty_geometry import SHIFT, to_fixed
from livefuse.pipeline.effects.beauty_makeup import fade_sides
from livefuse.pipeline.effects.beauty_patch import (
    add_chroma,
    cut_patch,
    fill_polygons,
    read_chroma,
)
from livefuse.pipeline.topology import BROW_LEFT, BROW_RIGHT, EYE_LEFT, EYE_RIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.beauty_canvas import Canvas, Floats
    from livefuse.pipeline.effects.beauty_patch import Patch

_LIDS: Final = ((159, 145), (386, 374))
_SHUT_MM: Final = 2.0
_OPEN_MM: Final = 4.5
_EYE_SHARE: Final = 0.94  # of the polygon: its rim is lashes
_UPPER_LID: Final = (
    8  # the first points of an eye's ring, from the outer corner, short of the inner
)
_FINER: Final = 4


def brighten_eyes(canvas: Canvas) -> None:
    """Whiten what is lighter than the eye's mean, and add contrast within the opening."""
    amount = canvas.amounts["eye_bright"] * canvas.tone.lids
    if amount <= 0.0:
        return
    work = canvas.geometry.work
    eyes = [work[EYE_LEFT], work[EYE_RIGHT]]
    patch = cut_patch(canvas, np.concatenate(eyes), 1.0)
    if patch is None:
        return
    shapes = []
    for eye, lids in zip(eyes, _LIDS, strict=True):
        middle = eye.mean(axis=0)
        gap = math.dist(*work[list(lids)]) / canvas.geometry.mm_work
        open_share = min(max((gap - _SHUT_MM) / (_OPEN_MM - _SHUT_MM), 0.0), 1.0)
        shapes.append((middle + (eye - middle) * np.float32(_EYE_SHARE), open_share))
    weight = fill_polygons(patch, shapes, 3)
    luma = canvas.luma[patch.box]
    above = luma - _level_eyes(canvas, patch, luma, shapes)
    white = clip(above * np.float32(1 / 25), 0.0, 1.0)
    weight *= np.float32(amount)
    detail = canvas.get_detail()
    detail[patch.box] += weight * (0.28 * clip(above, -30.0, 40.0) + 9.0 * white + 3.0)
    weight *= white
    weight *= np.float32(0.45 * canvas.tone.colourful * (1.0 - canvas.tone.cast))
    u, v = read_chroma(canvas, patch)
    add_chroma(canvas, patch, weight * (128.0 - u), weight * (128.0 - v))


def _level_eyes(
    canvas: Canvas, patch: Patch, luma: Floats, shapes: list[tuple[NDArray[np.float32], float]]
) -> Floats:
    """Return each eye's own mean luma, laid over its place."""
    level = np.zeros(luma.shape, np.float32)
    corner = np.array([patch.x, patch.y], np.float32)
    inside = np.zeros(luma.shape, np.uint8)
    for name, (points, _) in zip(("left", "right"), shapes, strict=True):
        inside.fill(0)
        fixed = to_fixed(points - corner)
        cv2.fillPoly(inside, [fixed], 255, shift=SHIFT)
        mean = canvas.calm.settle(f"eye_{name}", float(cv2.mean(luma, inside)[0]))
        cv2.fillPoly(level, [fixed], mean, shift=SHIFT)
        # The soft mask reaches a px further than the shape.
        cv2.polylines(level, [fixed], True, mean, 3, shift=SHIFT)  # noqa: FBT003 - closed; OpenCV's order
    return level


def deepen_brows(canvas: Canvas) -> None:
    """Darken the hair that is there, and fill a little."""
    amount = canvas.amounts["brows"]
    if amount <= 0.0:
        return
    work = canvas.geometry.work
    left, right = fade_sides(canvas.geometry)
    brows = [(work[BROW_LEFT], left), (work[BROW_RIGHT], right)]
    patch = cut_patch(canvas, np.concatenate([work[BROW_LEFT], work[BROW_RIGHT]]), 1.5)
    if patch is None:
        return
    weight = fill_polygons(patch, brows, 5)
    weight *= np.float32(amount)
    luma = canvas.luma[patch.box]
    hair = 0.22 * clip(np.float32(0.92 * canvas.tone.y) - luma, 0.0, 70.0) + 5.0
    floor = clip((luma - np.float32(canvas.black)) * np.float32(1 / 40), 0.0, 1.0)
    detail = canvas.get_detail()
    detail[patch.box] -= weight * np.minimum(hair, 17.0) * floor
    weight *= np.float32(0.3 * canvas.tone.colourful * (1.0 - canvas.tone.cast))
    u, v = read_chroma(canvas, patch)
    add_chroma(canvas, patch, weight * (126.0 - u), weight * (131.0 - v))


def draw_liner(canvas: Canvas) -> None:
    """Draw a line that thins towards the nose on each upper lid. On the frame's px, in place."""
    amount = canvas.amounts["liner"] * canvas.tone.lids
    if amount <= 0.0:
        return
    corner = np.array([canvas.grid.x, canvas.grid.y], np.float32)
    for eye, side, fade in zip(
        (EYE_LEFT, EYE_RIGHT), (-1.0, 1.0), fade_sides(canvas.geometry), strict=True
    ):
        if fade > 0.0:
            lid = canvas.geometry.points[eye[:_UPPER_LID]] - corner
            _draw_line(canvas, _outline(canvas, lid, side), amount * fade)


def _outline(canvas: Canvas, lid: NDArray[np.float32], side: float) -> NDArray[np.float32]:
    """Return the line's outline: along the lid, back above it, and out to the wing's tip."""
    geometry = canvas.geometry
    mm, up = geometry.mm, -geometry.down
    thick = 1.6 * np.linspace(1.0, 0.0, len(lid)) ** 0.7
    lower = lid + up * np.float32(0.35 * mm)
    upper = lower + np.outer(thick, up) * mm
    tip = lid[0] + (geometry.across * (2.6 * side) + up * 2.0) * mm
    return np.concatenate([lower, upper[::-1], tip[None]]).astype(np.float32)


def _draw_line(canvas: Canvas, outline: NDArray[np.float32], amount: float) -> None:
    geometry = canvas.geometry
    height, width = canvas.y.shape
    margin = 1.0 * geometry.mm + 2.0
    low = np.maximum(outline.min(axis=0) - margin, 0.0).astype(int)
    high = np.minimum(outline.max(axis=0) + margin + 1.0, (width, height)).astype(int)
    if (high - low < 2).any():  # noqa: PLR2004 - nothing of it lies in the picture
        return
    part = canvas.y[low[1] : high[1], low[0] : high[0]]
    # Finer than the px: OpenCV fills at least the px of the outline, however thin the shape.
    fine = np.zeros((part.shape[0] * _FINER, part.shape[1] * _FINER), np.uint8)
    points = (outline - low.astype(np.float32) + np.float32(0.5)) * np.float32(_FINER)
    cv2.fillPoly(fine, [to_fixed(points - np.float32(0.5))], 255, shift=SHIFT)
    mask = cv2.resize(fine, (part.shape[1], part.shape[0]), interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(mask, (0, 0), max(0.35 * geometry.mm, 0.5)).astype(np.float32)
    soft *= np.float32(-0.8 * amount / 255.0)
    soft *= np.maximum(part.astype(np.float32) - (canvas.black + 12.0), 0.0)
    if canvas.visible is not None:
        rows = slice(low[1], high[1])
        visible = enlarge(canvas.visible, (width, height))
        soft *= visible[rows, low[0] : high[0]]
    cv2.add(part, soft, dst=part, dtype=cv2.CV_8U)
