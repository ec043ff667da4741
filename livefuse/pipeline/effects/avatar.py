"""Drawn avatars by name, and the swapper that shows them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import cv2
import numpy as np

from livefuse.pipeline.canonical import CANONICAL
from livefuse.pipeline.effects.avatar_shape import HEIGHT_PX, WIDTH_PX, to_texture
from livefuse.pipeline.effects.mesh_regions import EYE_RINGS
from livefuse.pipeline.topology import BROW_LEFT, BROW_RIGHT, LIPS_OUTER, OVAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SKIN_COARSER = 4


@cache
def create_skin() -> NDArray[np.float32]:
    """Return where the wearer's skin is in a drawing's frame, float32 0..1, a quarter as fine."""
    mask = np.zeros((HEIGHT_PX // _SKIN_COARSER, WIDTH_PX // _SKIN_COARSER), np.uint8)

    def draw(indices: object, value: int, grow_px: int = 0) -> None:
        places = to_texture(CANONICAL[np.asarray(indices)]) / _SKIN_COARSER
        hull = cv2.convexHull(places)[:, 0]
        cv2.fillPoly(mask, [np.rint(hull * 16).astype(np.int32)], value, cv2.LINE_8, 4)
        if grow_px:
            cv2.polylines(mask, [np.rint(hull * 16).astype(np.int32)], True, value, grow_px, cv2.LINE_8, 4)

    draw(OVAL, 255)
    cv2.erode(mask, np.ones((9, 9), np.uint8), dst=mask)
    for part in (EYE_RINGS[0], EYE_RINGS[1], BROW_LEFT, BROW_RIGHT, LIPS_OUTER):
        draw(part, 0, 3)
    return cv2.GaussianBlur(mask, (0, 0), 1.0).astype(np.float32) / 255
