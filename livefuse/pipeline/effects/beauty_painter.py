"""One face made up: what is done, in order. Tone first, shape last, so that masks fit the input.

shrink -> skin's colour, masks -> skin, tone, soft make-up (coarse) -> mouth, eyes, brows (work)
-> added to the planes once -> pores, sharpening, liner (the frame's px) -> moved
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects import beauty_skin as skin
from livefuse.pipeline.effects.beauty_canvas import (
    Buffers,
    Calm,
    Canvas,
    Region,
    apply_lifts,
    halve,
)
from livefuse.pipeline.effects.beauty_eyes import brighten_eyes, deepen_brows, draw_liner
from livefuse.pipeline.effects.beauty_geometry import measure_face
from livefuse.pipeline.effects.beauty_makeup import paint_soft
from livefuse.pipeline.effects.beauty_masks import create_masks, measure_tone
from livefuse.pipeline.effects.beauty_mouth import paint_mouth
from livefuse.pipeline.effects.beauty_shape import SHAPE_NAMES
from livefuse.pipeline.effects.beauty_tone import (
    change_shine,
    change_tone,
    clear_features,
    sharpen,
)
from livefuse.pipeline.effects.beauty_warp import plan_warp, warp_planes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.frame import Frame
    from livefuse.pipeline.effects.beauty_amounts import Amounts
    from livefuse.pipeline.effects.beauty_canvas import Floats
    from livefuse.pipeline.effects.beauty_geometry import FaceGeometry, Grid
    from livefuse.pipeline.effects.beauty_masks import SkinTone

_SOFT: Final = (
    "smooth", "even", "dark_circles", "folds", "brighten", "whiten", "rosy", "warm", "shine",
    "contrast", "saturation", "blush", "contour", "highlight", "shadow",
)  # fmt: skip
_BLACK: Final = 16.0  # limited range
_WARP_BLUR: Final = 0.15  # as much sharpening makes up for what a bilinear warp takes
_VISIBLE: Final = 255


class Sitter:
    """What is kept of one face from frame to frame."""

    def __init__(self) -> None:
        self.geometry: FaceGeometry | None = None
        self.tone: SkinTone | None = None
        self.calm = Calm()


class BeautyPainter:
    """Paints faces in the planes of a frame. One thread."""

    def __init__(self) -> None:
        self._buffers = Buffers()

    def paint(
        self, frame: Frame, face: Face, amounts: Amounts, sitter: Sitter, dt_s: float
    ) -> bool:
        """Do `amounts` to `face` in place; say whether there was a face to do it to."""
        mesh = face.mesh
        if mesh is None or amounts.is_nothing:
            return False
        size = (frame.width, frame.height)
        geometry = sitter.geometry = measure_face(mesh, size, sitter.geometry)
        if geometry is None:
            return False
        region = Region(frame, geometry.grid, self._buffers)
        sitter.calm.advance(dt_s)
        black = 0.0 if frame.colour.full_range else _BLACK
        canvas = _open_canvas(region.planes, geometry, amounts, sitter, dt_s)
        canvas.black = black
        canvas.visible = _read_visible(face, geometry.grid)
        self._paint_canvas(canvas)
        warp = None
        if amounts.has_any(*SHAPE_NAMES):
            warp = plan_warp(geometry, amounts, canvas.masks.fade, size)
        skin.flatten_pores(canvas, self._buffers)
        sharpen(canvas, _WARP_BLUR * min(warp.strength_px, 1.0) if warp else 0.0, self._buffers)
        draw_liner(canvas)
        if warp is not None:
            warp_planes(region.planes, warp, geometry.grid.k, self._buffers)
        region.write_back()
        return True

    def _paint_canvas(self, canvas: Canvas) -> None:
        """Gather all that is added, and add it."""
        if canvas.amounts.has_any(*_SOFT):
            skin.smooth_skin(canvas)
            skin.even_colour(canvas)
            folds, circles = paint_soft(canvas)
            if folds is not None:
                skin.fill_folds(canvas, folds)
            if circles is not None:
                skin.lift_dark_circles(canvas, circles)
            change_shine(canvas)
            change_tone(canvas)
        clear_features(canvas)
        paint_mouth(canvas)
        brighten_eyes(canvas)
        deepen_brows(canvas)
        apply_lifts(canvas, self._buffers)


def _open_canvas(
    planes: list[NDArray[np.uint8]],
    geometry: FaceGeometry,
    amounts: Amounts,
    sitter: Sitter,
    dt_s: float,
) -> Canvas:
    grid = geometry.grid
    steps = grid.k.bit_length() - 1
    luma = halve(planes[0], steps)
    coarse = (halve(luma, 1), halve(planes[1], steps), halve(planes[2], steps))
    sitter.tone = measure_tone(geometry, coarse, sitter.tone, dt_s)
    width, height = grid.coarse
    zeros = np.zeros((3, height, width), np.float32)
    return Canvas(
        *planes,
        grid=grid,
        geometry=geometry,
        amounts=amounts,
        tone=sitter.tone,
        masks=create_masks(geometry, coarse, sitter.tone),
        luma=luma.astype(np.float32),
        coarse_luma=coarse[0],
        coarse_u=coarse[1],
        coarse_v=coarse[2],
        smooth_luma=zeros[0],
        gain=None,
        lift=zeros[0],
        lift_u=zeros[1],
        lift_v=zeros[2],
        detail=None,
        visible=None,
        calm=sitter.calm,
        black=_BLACK,
    )


def _read_visible(face: Face, grid: Grid) -> Floats | None:
    """Return what of the face is not occluded, on the coarse grid; None: all of it."""
    box, occlusion = face.occlusion_box, face.occlusion
    if box is None or occlusion is None or box.width <= 0.0 or box.height <= 0.0:
        return None
    cell = 2 * grid.k
    rows, columns = occlusion.shape
    to_x, to_y = box.width / columns, box.height / rows
    # Px of the mask to px of the frame to cells of the grid, all by their centres.
    matrix = np.array(
        [
            [to_x / cell, 0.0, (0.5 * to_x + box.x0 - grid.x) / cell - 0.5],
            [0.0, to_y / cell, (0.5 * to_y + box.y0 - grid.y) / cell - 0.5],
        ]
    )
    small = cv2.warpAffine(occlusion, matrix, grid.coarse, flags=cv2.INTER_LINEAR)
    return np.multiply(cv2.bitwise_not(small), np.float32(1 / _VISIBLE))
