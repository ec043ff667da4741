"""Lids: where the wearer closes an eye that is open on the source's photo, the lid is the wearer's.

A photo of an open eye has no lid to show: stretched over a closed eye, its lashes become a smear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_regions import EYE_RINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.effects.mesh_raster import MeshView

    Values = NDArray[np.float32]

# Of the left and the right eye: middle of the upper and lower lid, both corners.
_POINTS: Final = ((159, 145, 33, 133), (386, 374, 362, 263))
_CLOSED, _OPEN = 0.40, 0.80  # of the opening on the photo
_SOFT: Final = 0.022  # of the face's width
_GROW: Final = 1.12


def measure_eyes(points: Values) -> tuple[float, float]:
    """Return the left and the right eye's height over its width, in space; about 0.3 when open."""
    left, right = (
        float(
            np.linalg.norm(points[upper] - points[lower])
            / max(float(np.linalg.norm(points[outer] - points[inner])), 1e-3)
        )
        for upper, lower, outer, inner in _POINTS
    )
    return left, right


def draw_closed_lids(view: MeshView, source_open: tuple[float, float]) -> Values | None:
    """Return 0..1 on the view's grid: where lids are closed against the source's; None: nowhere."""
    shares = [
        _share_closed(own / max(usual, 1e-3))
        for own, usual in zip(measure_eyes(view.points), source_open, strict=True)
    ]
    if max(shares) <= 0.0:
        return None
    lids = np.zeros(view.inside.shape, np.float32)
    scale = np.array(view.scale, np.float32)
    for ring, share in zip(EYE_RINGS, shares, strict=True):
        outline = view.points[list(ring), :2]
        centre = outline.mean(axis=0)
        grown = (centre + _GROW * (outline - centre) + 0.5) * scale - 0.5
        cv2.fillPoly(lids, [np.rint(grown * 16).astype(np.int32)], share, cv2.LINE_8, 4)
    sigma = max(_SOFT * view.face_px * view.scale[0], 0.8)
    return np.asarray(cv2.GaussianBlur(lids, (0, 0), sigma), np.float32)


def _share_closed(ratio: float) -> float:
    t = min(max((_OPEN - ratio) / (_OPEN - _CLOSED), 0.0), 1.0)
    return t * t * (3 - 2 * t)
