"""Soft masks that follow the head: one unit disc, warped onto each face's ellipse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.geometry import Ellipse, fit_ellipse, scale_ellipse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Track

_SIDE: Final = 160
_LIFT: Final = 0.08  # a detector's box ends at the hairline: the cover reaches above it


def create_cover(track: Track, size: float) -> Ellipse:
    """Return the ellipse that is to be hidden whole: `size` times the face, a little higher."""
    face = fit_ellipse(track.box, track.roll_rad)
    lift = _LIFT * face.half_height
    raised = face._replace(
        x=face.x + lift * math.sin(face.roll_rad), y=face.y - lift * math.cos(face.roll_rad)
    )
    return scale_ellipse(raised, size, size)


class SoftMask:
    """Draws masks: 255 within an ellipse, falling to 0 at (1 + feather) times its size."""

    def __init__(self, feather: float) -> None:
        self.reach = 1.0 + max(feather, 0.02)
        middle = (_SIDE - 1) / 2
        # The disc ends short of the picture's rim, so that warping finds zeros outside.
        self._px_per_radius = (middle - 2) / self.reach
        axis = (np.arange(_SIDE, dtype=np.float32) - middle) / self._px_per_radius
        radius = np.hypot(axis[None, :], axis[:, None])
        share = np.clip((self.reach - radius) / (self.reach - 1.0), 0.0, 1.0)
        self._disc = np.rint(255 * share * share * (3 - 2 * share)).astype(np.uint8)

    def draw(
        self, ellipse: Ellipse, corner: tuple[float, float], out: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Fill `out` with the mask of the part of the plane that begins at `corner` (x, y)."""
        cosine, sine = math.cos(ellipse.roll_rad), math.sin(ellipse.roll_rad)
        across = ellipse.half_width / self._px_per_radius
        along = ellipse.half_height / self._px_per_radius
        turn = np.array([[cosine * across, -sine * along], [sine * across, cosine * along]])
        middle = (_SIDE - 1) / 2
        place = np.array([ellipse.x - corner[0], ellipse.y - corner[1]]) - turn @ [middle, middle]
        size = (out.shape[1], out.shape[0])
        cv2.warpAffine(
            self._disc, np.column_stack([turn, place]), size, dst=out, flags=cv2.INTER_LINEAR
        )
        return out


def halve_ellipse(ellipse: Ellipse) -> Ellipse:
    """Return `ellipse` in px of the chroma planes, which lie between two luma px."""
    return Ellipse(
        (ellipse.x - 0.5) / 2,
        (ellipse.y - 0.5) / 2,
        ellipse.half_width / 2,
        ellipse.half_height / 2,
        ellipse.roll_rad,
    )
