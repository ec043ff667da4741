"""The face's parts in MediaPipe's canonical UV map: constant masks for all mesh effects.

A mask or texture is (UV_SIDE, UV_SIDE); `UV_PX` are the 468 points in its px, v down. In these px
brows lie at y 128..160, eyes at 177..210, the mouth at 335..378, the forehead's top at 55, the
chin at 488. All arrays are float32 0..1 unless said otherwise, and read-only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.topology import (
    BROW_LEFT,
    BROW_RIGHT,
    EYE_LEFT,
    EYE_RIGHT,
    LIPS_INNER,
    LIPS_OUTER,
    OVAL,
    TRIANGLES,
    UV,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Mask = NDArray[np.float32]

UV_SIDE: Final = 512
POINTS: Final = 468
UV_PX: Final[NDArray[np.float32]] = (UV * UV_SIDE).astype(np.float32)
UV_PX.setflags(write=False)

# The ring of points that encloses lids and lashes, from the nose's side round to it again.
EYE_RINGS: Final = (
    (130, 247, 30, 29, 27, 28, 56, 190, 243, 112, 26, 22, 23, 24, 110, 25),
    (359, 467, 260, 259, 257, 258, 286, 414, 463, 341, 256, 252, 253, 254, 339, 255),
)
NOSTRILS: Final = (98, 97, 2, 326, 327, 48, 278, 64, 294)
# Middle of the left and right side of the face: its width is measured between them.
SIDES: Final = (234, 454)
BROW_GROW_PX: Final = 7
_EYE_GROW_PX: Final = 8
_LIPS_GROW_PX: Final = 6


class Regions(NamedTuple):
    """Constant masks in UV.

    `inside`: covered by triangles (all but the inner mouth). `distance`: px to the oval's line,
    0 outside. `features`: brows, eyes, lips, nostrils, each a little grown. `skin`: inside and no
    feature. `holes`: eyes and inner mouth. `alpha`: where a swapped texture shows, feathered at
    the oval and fading up the forehead.
    """

    inside: Mask
    distance: Mask
    features: Mask
    skin: Mask
    holes: Mask
    alpha: Mask


def smooth_step(low: float, high: float, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 0 below `low`, 1 above `high`, 3 t^2 - 2 t^3 between (downwards when high < low)."""
    t = np.clip((x - low) / (high - low), 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t), np.float32)


def draw_polygons(*outlines: Sequence[int] | NDArray[np.int32], grow_px: int = 0) -> Mask:
    """Return a UV mask of the polygons through these points, grown by `grow_px`."""
    mask = np.zeros((UV_SIDE, UV_SIDE), np.uint8)
    for outline in outlines:
        fixed = np.rint(UV_PX[list(outline)] * 16).astype(np.int32)
        cv2.fillPoly(mask, [fixed], 255, cv2.LINE_8, 4)
    if grow_px:
        size = (2 * grow_px + 1, 2 * grow_px + 1)
        mask = np.asarray(cv2.dilate(mask, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, size)))
    return (mask > 0).astype(np.float32)


@cache
def get_rows_columns() -> tuple[Mask, Mask]:
    """Return y and x of each UV px, (UV_SIDE, 1) and (1, UV_SIDE)."""
    line = np.arange(UV_SIDE, dtype=np.float32)
    line.setflags(write=False)
    return line[:, None], line[None, :]


@cache
def get_regions() -> Regions:
    """Return the masks; drawn once per process (some 20 ms)."""
    rows, _ = get_rows_columns()
    inside = _draw_triangles()
    oval = draw_polygons(OVAL)
    distance = np.asarray(
        cv2.distanceTransform((oval * 255).astype(np.uint8), cv2.DIST_L2, 5), np.float32
    )
    features = draw_polygons(*BROW_HULLS, grow_px=BROW_GROW_PX)
    for part in (
        draw_polygons(*EYE_RINGS, grow_px=_EYE_GROW_PX),
        draw_polygons(LIPS_OUTER, grow_px=_LIPS_GROW_PX),
        draw_polygons(_find_hull(NOSTRILS)),
    ):
        features = np.maximum(features, part)
    holes = draw_polygons(EYE_LEFT, EYE_RIGHT, LIPS_INNER)
    alpha = smooth_step(14, 58, distance) * smooth_step(62, 112, rows)
    regions = Regions(
        inside, distance, features, inside * (1 - features), holes, np.asarray(alpha, np.float32)
    )
    for mask in regions:
        mask.setflags(write=False)
    return regions


@cache
def draw_hair_zone(
    top: tuple[float, float], aside: tuple[float, float], low: tuple[float, float]
) -> Mask:
    """Return where hair, a hat or a strap may lie over the face; never on a feature.

    Above `top` (y), and farther than `aside` from the middle (x) down to `low` (y): each where it
    begins to fall or rise and where it has done so.
    """
    rows, columns = get_rows_columns()
    sides = smooth_step(*aside, np.abs(columns - UV_SIDE / 2)) * (1 - smooth_step(*low, rows))
    zone = np.maximum(1 - smooth_step(*top, rows), sides) * (1 - get_regions().features)
    zone.setflags(write=False)
    return np.asarray(zone, np.float32)


def _find_hull(points: Sequence[int] | NDArray[np.int32]) -> NDArray[np.int32]:
    indices = np.asarray(points, np.int32)
    order = cv2.convexHull(UV_PX[indices], returnPoints=False)
    return np.asarray(indices[order[:, 0]], np.int32)


def _draw_triangles() -> Mask:
    mask = np.zeros((UV_SIDE, UV_SIDE), np.uint8)
    for corners in np.rint(UV_PX[TRIANGLES] * 16).astype(np.int32):
        cv2.fillConvexPoly(mask, corners, 255, cv2.LINE_8, 4)
    return (mask > 0).astype(np.float32)


BROW_HULLS: Final = (_find_hull(BROW_LEFT), _find_hull(BROW_RIGHT))
