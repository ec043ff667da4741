"""From a face mesh to a map: which px of the UV texture each px of the picture shows.

The map is made on a grid a quarter as fine as the face (never under some 84 px across it): all
triangles at once in numpy, painted far to near; what faces away is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.effects.mesh_normals import compute_visibility
from livefuse.pipeline.effects.mesh_regions import (
    POINTS,
    SIDES,
    UV_PX,
    UV_SIDE,
)
from livefuse.pipeline.topology import OVAL, TRIANGLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

MIN_FACE_PX: Final = 24.0
"""Narrower faces are not drawn: a texture of them is a dot."""

_GRID_ACROSS_PX: Final = 84.0
_COARSEST: Final = 0.25
_MARGIN: Final = 0.02  # around the oval, of the face's width: so that its rim is seen from outside
_MAX_REACH: Final = 4.0  # of the frame's long side: farther points are not a face
_MIN_AREA_PX: Final = 1e-3
_EDGE: Final = 1e-3  # two triangles share the px on their common edge
_NEXT, _AFTER = [1, 2, 0], [2, 0, 1]
_LEVEL: Final = 1e-9  # an edge's slope below which it runs along the row


class GridBox(NamedTuple):
    """The face's region of a frame: even px, x1 and y1 exclusive, and the map's grid on it."""

    x0: int
    y0: int
    x1: int
    y1: int
    columns: int
    rows: int

    @property
    def width(self) -> int:
        """Width in px."""
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        """Height in px."""
        return self.y1 - self.y0


@dataclass(slots=True, eq=False)
class MeshView:
    """A mesh as it lies in a frame.

    `points` are the mesh less the box's corner, float32 (468, 3) px; `face_px` is its width in
    space (turning does not narrow it), `yaw_rad` its turn to the side. On the box's grid (rows,
    columns): `uv` float32 (.., 2) px of the texture, right from two px around the face on;
    `visible` float32 0..1, fading where skin near the oval turns away; `inside` uint8 255.
    """

    box: GridBox
    points: Values
    face_px: float
    yaw_rad: float
    uv: Values
    visible: Values
    inside: NDArray[np.uint8]

    @property
    def scale(self) -> tuple[float, float]:
        """Grid px per px of the frame, across and down."""
        return self.box.columns / self.box.width, self.box.rows / self.box.height


def measure_yaw(points: Values) -> float:
    """Return how far the face is turned to the side, radians, from depth and width of its sides."""
    left, right = points[SIDES[0]], points[SIDES[1]]
    across = math.hypot(float(right[0] - left[0]), float(right[1] - left[1]))
    return math.atan2(float(right[2] - left[2]), across)


def create_view(mesh: NDArray[np.float32], width: int, height: int) -> MeshView | None:
    """Return `mesh` (468 or 478, 3; px) as it lies in a frame of `width` x `height` px.

    None: its numbers cannot be a face, it is too small, or it lies outside the frame. Pure.
    """
    points = np.asarray(mesh[:POINTS], np.float32)
    if points.shape != (POINTS, 3) or not np.isfinite(points).all():
        return None
    if np.abs(points).max() > _MAX_REACH * max(width, height):
        return None
    face_px = float(np.linalg.norm(points[SIDES[1]] - points[SIDES[0]]))
    if face_px < MIN_FACE_PX:
        return None
    box = _find_box(points, face_px, width, height)
    if box is None:
        return None
    placed = points - np.array([box.x0, box.y0, 0], np.float32)
    painted = _paint_face(placed, box)
    if painted is None:
        return None
    inside, layers = painted
    return MeshView(
        box=box,
        points=placed,
        face_px=face_px,
        yaw_rad=measure_yaw(points),
        uv=np.ascontiguousarray(layers[:, :, :2]),
        visible=np.ascontiguousarray(layers[:, :, 2]),
        inside=inside,
    )


def spread_over_uv(values: Values) -> tuple[NDArray[np.uint8], Values]:
    """Return `values` (468, n) spread over the UV map, (512, 512, n), and its mask (255 covered).

    The inner mouth is not covered; values are 0 there.
    """
    box = GridBox(0, 0, UV_SIDE, UV_SIDE, UV_SIDE, UV_SIDE)
    painted = paint_triangles(UV_PX, np.asarray(values, np.float32), TRIANGLES, box)
    if painted is None:
        raise ValueError("the UV map is empty")
    return painted


def _find_box(points: Values, face_px: float, width: int, height: int) -> GridBox | None:
    low = points[OVAL, :2].min(axis=0) - _MARGIN * face_px
    high = points[OVAL, :2].max(axis=0) + _MARGIN * face_px
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1 = min(math.ceil(float(high[0]) / 2) * 2, width)
    y1 = min(math.ceil(float(high[1]) / 2) * 2, height)
    if x1 - x0 < MIN_FACE_PX / 2 or y1 - y0 < MIN_FACE_PX / 2:
        return None
    scale = max(_COARSEST, min(1.0, _GRID_ACROSS_PX / face_px))
    return GridBox(x0, y0, x1, y1, round((x1 - x0) * scale), round((y1 - y0) * scale))


def _paint_face(points: Values, box: GridBox) -> tuple[NDArray[np.uint8], Values] | None:
    """Return the mask (255 covered) and u, v and visibility on the box's grid.

    None when no triangle faces the camera.
    """
    # The centre of grid px i lies at (i + .5) / scale - .5 px of the box.
    scale = np.array([box.columns / box.width, box.rows / box.height], np.float32)
    flat = np.asarray((points[:, :2] + 0.5) * scale - 0.5, np.float32)
    values = np.column_stack([UV_PX, compute_visibility(points)])
    painted = paint_triangles(flat, values, sort_triangles(flat, points[:, 2]), box)
    if painted is not None:
        extend_layers(painted[1], painted[0])
    return painted


def sort_triangles(
    flat: Values, depth: Values, triangles: NDArray[np.int32] = TRIANGLES
) -> NDArray[np.int32]:
    """Return those of `triangles` (n, 3) that face the camera, the farthest first."""
    a, b, c = (flat[triangles[:, i]] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    front = triangles[area > _MIN_AREA_PX]
    far = depth[front].sum(axis=1)
    return np.asarray(front[np.argsort(-far, kind="stable")], np.int32)


class _Spans(NamedTuple):
    """One row of one triangle each, far to near: its y, first px, length, and the triangle."""

    y: NDArray[np.int32]
    x: NDArray[np.int32]
    length: NDArray[np.int32]
    which: NDArray[np.int32]


def paint_triangles(
    flat: Values, values: Values, order: NDArray[np.int32], box: GridBox
) -> tuple[NDArray[np.uint8], Values] | None:
    """Return the mask (255 covered) and `values` (468, n) spread over the triangles in `order`.

    All rows of all triangles in one go; of several triangles on a px the last one stays.
    """
    weights = _solve_weights(flat, order)
    spans = _find_spans(flat[order, 1], weights, box)
    total = int(spans.length.sum())
    if not total:
        return None
    start_of_span = np.cumsum(spans.length) - spans.length
    x = np.arange(total) - np.repeat(start_of_span - spans.x, spans.length)
    place = x + np.repeat(spans.y * box.columns, spans.length)
    x_px = x.astype(np.float32)
    layers = np.zeros((box.rows, box.columns, values.shape[1]), np.float32)
    layer = np.zeros(box.rows * box.columns, np.float32)
    for index in range(values.shape[1]):
        # A value in a triangle is affine: the weights' coefficients times the corners' values.
        a, b, c = (weights * values[order, index].T).sum(axis=1)
        at_row = b[spans.which] * spans.y + c[spans.which]
        spread = np.repeat(a[spans.which].astype(np.float32), spans.length)
        spread *= x_px
        spread += np.repeat(at_row.astype(np.float32), spans.length)
        layer[place] = spread
        layers[:, :, index] = layer.reshape(box.rows, box.columns)
    inside = np.zeros(box.rows * box.columns, np.uint8)
    inside[place] = 255
    return inside.reshape(box.rows, box.columns), layers


def _solve_weights(flat: Values, order: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return a, b, c of each corner's barycentric weight a x + b y + c: (3, 3 corners, n)."""
    x, y = flat[order.T].astype(np.float64).transpose(2, 0, 1)
    x1, y1, x2, y2 = x[_NEXT], y[_NEXT], x[_AFTER], y[_AFTER]
    weights = np.stack([y1 - y2, x2 - x1, x1 * y2 - x2 * y1])
    weights /= weights[2].sum(axis=0)
    return weights


def _find_spans(corners_y: Values, weights: NDArray[np.float64], box: GridBox) -> _Spans:
    """Return which px of each row lie in each triangle: all three weights at least 0."""
    top = np.minimum(np.minimum(corners_y[:, 0], corners_y[:, 1]), corners_y[:, 2])
    bottom = np.maximum(np.maximum(corners_y[:, 0], corners_y[:, 1]), corners_y[:, 2])
    low = np.ceil(np.maximum(top, 0)).astype(np.int32)
    high = np.floor(np.minimum(bottom, box.rows - 1)).astype(np.int32)
    tall = np.maximum(high - low + 1, 0)
    which = np.repeat(np.arange(len(corners_y), dtype=np.int32), tall)
    y = np.arange(which.size, dtype=np.int32) - np.repeat(
        (np.cumsum(tall) - tall - low).astype(np.int32), tall
    )
    from_x = np.zeros(which.size)
    to_x = np.full(which.size, box.columns - 1.0)
    for a, b, c in weights.transpose(1, 0, 2):
        # An edge along the row bounds nothing but the row itself: as if it were far away.
        slope = np.where(np.abs(a) < _LEVEL, _LEVEL, a)
        bound = (b / -slope)[which] * y + ((c + _EDGE) / -slope)[which]
        rising = (slope > 0)[which]
        np.maximum(from_x, bound, out=from_x, where=rising)
        np.minimum(to_x, bound, out=to_x, where=~rising)
    np.clip(to_x, -1.0, None, out=to_x)
    np.clip(from_x, None, box.columns, out=from_x)
    x = np.ceil(from_x).astype(np.int32)
    length = np.maximum(np.floor(to_x).astype(np.int32) - x + 1, 0)
    return _Spans(y, x, length, which)


def extend_layers(layers: Values, inside: NDArray[np.uint8]) -> None:
    """Fill two px around what is painted with the mean of the painted px near.

    Otherwise scaling up mixes the face's edge with nothing.
    """
    known = (inside > 0).astype(np.float32)
    summed = np.asarray(cv2.blur(layers, (5, 5), borderType=cv2.BORDER_ISOLATED))
    share = np.asarray(cv2.blur(known, (5, 5), borderType=cv2.BORDER_ISOLATED))
    near = (inside == 0) & (share > 1e-4)  # noqa: PLR2004 - less than one px of 25
    layers[near] = summed[near] / share[near, None]
