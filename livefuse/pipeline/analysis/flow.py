"""Where a face went from one picture to the next: optical flow of points in it, as a similarity.

Pyramidal Lucas-Kanade (Bouguet 2000), checked forward and backward (Kalal et al. 2010,
"Forward-Backward Error"): a point that does not come back to where it set out is not believed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.face import Box
from livefuse.geometry import (
    Ellipse,
    Similarity,
    apply_similarity,
    clip_box,
    create_matrix,
    create_similarity,
    fit_similarity,
    get_bounds,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FACE_PX: Final = 64.0  # larger faces are shrunk to this: flow needs no more, and costs by area
_MARGIN: Final = 0.5  # of the face's size, on each side: how far it may go within the crop
_WINDOW: Final = (11, 11)
_LEVELS: Final = 2
_CRITERIA: Final = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 6, 0.03)
_MIN_EIGENVALUE: Final = 5e-4
_MAX_RETURN_PX: Final = 1.5
_MIN_POINTS: Final = 8
_MIN_SHARE: Final = 0.4
_MAX_RESIDUAL_PX: Final = 2.5
_SCALE_RANGE: Final = (0.75, 1.33)
_PATCH_SIDE: Final = 24
_FLAT: Final = 1.0


def _create_disc() -> NDArray[np.float32]:
    """Return points spread over the unit disc: rings of 1, 6, 9 and 10."""
    points = [(0.0, 0.0)]
    for radius, amount in ((0.3, 6), (0.6, 9), (0.85, 10)):
        turns = (2 * math.pi * i / amount for i in range(amount))
        points += [(radius * math.cos(turn), radius * math.sin(turn)) for turn in turns]
    return np.array(points, np.float32)


_DISC: Final = _create_disc()


class _Crop(NamedTuple):
    """A part of both pictures, shrunk; a picture's point p is at (p - corner) * scale."""

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    corner: NDArray[np.float32]
    scale: float


def follow_face(
    before: NDArray[np.uint8], after: NDArray[np.uint8], face: Ellipse
) -> Similarity | None:
    """Return how `face` moved between two luma pictures, or None when that cannot be trusted.

    `face` and the answer are in px of these pictures.
    """
    crop = _cut_crop(before, after, face)
    if crop is None:
        return None
    points = (_spread_points(face) - crop.corner) * crop.scale
    inside = (points >= 1).all(axis=1) & (points < np.array(crop.before.shape[::-1]) - 2).all(
        axis=1
    )
    points = points[inside]
    if len(points) < _MIN_POINTS:
        return None
    moved, is_good = _flow_points(crop, points)
    if is_good.sum() < max(_MIN_POINTS, _MIN_SHARE * len(points)):
        return None
    motion = _fit_robustly(points[is_good], moved[is_good])
    if motion is None:
        return None
    return _move_origin(motion, crop)


def cut_patch(luma: NDArray[np.uint8], face: Ellipse) -> NDArray[np.float32] | None:
    """Return how the face looks: (24, 24) luma, upright, mean 0, norm 1; None when it is flat."""
    side = _PATCH_SIDE
    to_picture = create_similarity(2 * face.half_width / side, face.roll_rad, 0.0, 0.0)
    middle = apply_similarity(to_picture, np.array([[side / 2, side / 2]]))[0]
    placed = to_picture._replace(tx=face.x - float(middle[0]), ty=face.y - float(middle[1]))
    patch = cv2.warpAffine(
        luma,
        create_matrix(placed),
        (side, side),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    ).astype(np.float32)
    patch -= patch.mean()
    norm = float(np.linalg.norm(patch))
    return patch / norm if norm > _FLAT * side else None


def compare_patches(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> float:
    """Return the normalised correlation of two patches, -1..1; 0 when one is flat."""
    if one is None or other is None:
        return 0.0
    return float((one * other).sum())


def _cut_crop(before: NDArray[np.uint8], after: NDArray[np.uint8], face: Ellipse) -> _Crop | None:
    bounds = get_bounds(face)
    margin = 2 * _MARGIN * face.half_width
    height, width = before.shape
    wide = Box(bounds.x0 - margin, bounds.y0 - margin, bounds.x1 + margin, bounds.y1 + margin)
    x0, y0, x1, y1 = (round(value) for value in clip_box(wide, width, height))
    if x1 - x0 < _WINDOW[0] or y1 - y0 < _WINDOW[1]:
        return None
    parts = (before[y0:y1, x0:x1], after[y0:y1, x0:x1])
    scale = min(1.0, _FACE_PX / (2 * face.half_width))
    if scale < 1.0:
        size = (max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale)))
        parts = tuple(cv2.resize(part, size, interpolation=cv2.INTER_LINEAR) for part in parts)  # type: ignore[assignment] # two uint8 pictures
    return _Crop(*parts, np.array([x0, y0], np.float32), scale)


def _spread_points(face: Ellipse) -> NDArray[np.float32]:
    turn = create_similarity(1.0, face.roll_rad, face.x, face.y)
    return apply_similarity(turn, _DISC * np.array([face.half_width, face.half_height], np.float32))


def _flow_points(
    crop: _Crop, points: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    moved, found = _run_flow(crop.before, crop.after, points)
    back, returned = _run_flow(crop.after, crop.before, moved)
    strayed = np.abs(back - points).max(axis=1)
    return moved, found & returned & (strayed < _MAX_RETURN_PX)


def _run_flow(
    before: NDArray[np.uint8], after: NDArray[np.uint8], points: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    moved, found, _ = cv2.calcOpticalFlowPyrLK(
        before,
        after,
        points,
        points.copy(),
        winSize=_WINDOW,
        maxLevel=_LEVELS,
        criteria=_CRITERIA,
        minEigThreshold=_MIN_EIGENVALUE,
    )
    return np.asarray(moved, np.float32), np.asarray(found, np.bool_)[:, 0]


def _fit_robustly(points: NDArray[np.float32], moved: NDArray[np.float32]) -> Similarity | None:
    """Fit, weigh each point down by its residual, fit again (Cauchy weights)."""
    try:
        motion = fit_similarity(points, moved)
        strayed = apply_similarity(motion, points) - moved
        squares = np.einsum("ij,ij->i", strayed, strayed).astype(np.float64)
        spread = max(float(np.sort(squares)[len(squares) // 2]), 0.01)
        motion = fit_similarity(points, moved, 1.0 / (1.0 + squares / spread))
    except ValueError:
        return None
    if spread > _MAX_RESIDUAL_PX**2 or not _SCALE_RANGE[0] < motion.scale < _SCALE_RANGE[1]:
        return None
    return motion


def _move_origin(motion: Similarity, crop: _Crop) -> Similarity:
    """Return `motion`, which is in px of the crop, in px of the picture."""
    a, b = motion.a, motion.b
    x, y = float(crop.corner[0]), float(crop.corner[1])
    return Similarity(
        a,
        b,
        motion.tx / crop.scale + x - a * x + b * y,
        motion.ty / crop.scale + y - b * x - a * y,
    )
