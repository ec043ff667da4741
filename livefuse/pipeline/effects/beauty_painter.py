"""One face made up: what is done, in order. Tone first, shape last, so that masks fit the input.

shrink -> skin's colour, masks -> skin, tone, soft make-up (coarse) -> mouth, eyes, brows (work)
-> added to the planes once -> pores, sharpening, liner (the frame's px) -> moved
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.pipeline.effects import beauty_skin as skin
from livefuse.pipeline.effects.beauty_amounts import scale_amounts
from livefuse.pipeline.effects.beauty_canvas import (
    Buffers,
    Canvas,
    Region,
    apply_lifts,
)
from livefuse.pipeline.effects.beauty_denoise import reduce_noise
from livefuse.pipeline.effects.beauty_eyes import brighten_eyes, deepen_brows, draw_liner
from livefuse.pipeline.effects.beauty_geometry import measure_face
from livefuse.pipeline.effects.beauty_makeup import paint_soft
from livefuse.pipeline.effects.beauty_mouth import paint_mouth
from livefuse.pipeline.effects.beauty_shape import SHAPE_NAMES
from livefuse.pipeline.effects.beauty_sitter import BLACK, Sitter, open_canvas, read_visible
from livefuse.pipeline.effects.beauty_tone import (
    change_shine,
    change_tone,
    clear_features,
    sharpen,
)
from livefuse.pipeline.effects.beauty_warp import plan_warp, warp_planes

if TYPE_CHECKING:
    from livefuse.face import Face
    from livefuse.frame import Frame
    from livefuse.pipeline.effects.beauty_amounts import Amounts

_SOFT: Final = (
    "smooth", "even", "dark_circles", "folds", "brighten", "whiten", "rosy", "warm", "shine",
    "contrast", "saturation", "blush", "contour", "highlight", "shadow",
)  # fmt: skip
_WARP_BLUR: Final = 0.15  # as much sharpening makes up for what a bilinear warp takes


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
        if geometry is None or geometry.trust <= 0.0:
            return False
        amounts = scale_amounts(amounts, geometry.trust)
        region = Region(frame, geometry.grid, self._buffers)
        sitter.calm.advance(dt_s)
        if amounts["denoise"] > 0.0:
            reduce_noise(region.planes, geometry, amounts["denoise"], self._buffers)
        black = 0.0 if frame.colour.full_range else BLACK
        canvas = open_canvas(region.planes, geometry, amounts, sitter, dt_s)
        canvas.black = black
        canvas.visible = read_visible(face, geometry.grid)
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
