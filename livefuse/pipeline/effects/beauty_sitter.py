"""What is kept of one face from frame to frame, and its canvas in a new frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.beauty_canvas import Calm, Canvas, halve
from livefuse.pipeline.effects.beauty_masks import MaskKeeper, create_masks, measure_tone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.pipeline.effects.beauty_amounts import Amounts
    from livefuse.pipeline.effects.beauty_canvas import Floats
    from livefuse.pipeline.effects.beauty_geometry import FaceGeometry, Grid
    from livefuse.pipeline.effects.beauty_masks import SkinTone

BLACK: Final = 16.0  # limited range
_VISIBLE: Final = 255


class Sitter:
    """What is kept of one face."""

    def __init__(self) -> None:
        self.geometry: FaceGeometry | None = None
        self.tone: SkinTone | None = None
        self.masks = MaskKeeper()
        self.calm = Calm()


def open_canvas(
    planes: list[NDArray[np.uint8]],
    geometry: FaceGeometry,
    amounts: Amounts,
    sitter: Sitter,
    dt_s: float,
) -> Canvas:
    """Return the canvas of a region's Y, U, V, with nothing to add yet."""
    grid = geometry.grid
    steps = grid.k.bit_length() - 1
    luma = halve(planes[0], steps)
    coarse = (halve(luma, 1), halve(planes[1], steps), halve(planes[2], steps))
    masks = sitter.masks.get(geometry)
    if masks is None or sitter.tone is None:
        sitter.tone = measure_tone(geometry, coarse, sitter.tone, 2 * dt_s)
        masks = create_masks(geometry, coarse, sitter.tone)
        sitter.masks.keep(masks, geometry)
        masks = replace(masks)
    width, height = grid.coarse
    zeros = np.zeros((3, height, width), np.float32)
    return Canvas(
        y=planes[0],
        u=planes[1],
        v=planes[2],
        grid=grid,
        geometry=geometry,
        amounts=amounts,
        tone=sitter.tone,
        masks=masks,
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
        black=BLACK,
    )


def read_visible(face: Face, grid: Grid) -> Floats | None:
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
