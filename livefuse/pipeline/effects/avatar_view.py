"""An avatar's mesh as it lies in a frame, on a grid that is coarser than the frame."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.pipeline.effects.avatar_shape import Shape, compute_normals
from livefuse.pipeline.effects.mesh_raster import (
    MIN_FACE_PX,
    GridBox,
    MeshView,
    extend_layers,
    measure_yaw,
    paint_triangles,
    sort_triangles,
)
from livefuse.pipeline.effects.mesh_regions import SIDES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

_POINTS: Final = 468
_WITH_IRISES: Final = 478
_GRID_ACROSS_PX: Final = 88.0
_COARSEST: Final = 0.25
_MAX_REACH: Final = 4.0  # of the frame's long side: farther points are not a face


@dataclass(slots=True, eq=False)
class PlacedAvatar:
    """One face's mesh in the frame. `points` px of the region, `normals` outwards."""

    view: MeshView
    points: Values
    irises: Values | None
    normals: Values
    towards: Values  # (rows, columns, 2): normals' x, y on the grid


def place_mesh(shape: Shape, mesh: Values, width: int, height: int) -> PlacedAvatar | None:
    """Return `shape` on a face's mesh (468 or 478, 3) in a frame of that size, or None."""
    face = np.asarray(mesh[:_POINTS], np.float32)
    if face.shape != (_POINTS, 3) or not np.isfinite(mesh).all():
        return None
    if np.abs(face).max() > _MAX_REACH * max(width, height):
        return None
    face_px = float(np.linalg.norm(face[SIDES[1]] - face[SIDES[0]]))
    if face_px < MIN_FACE_PX:
        return None
    points, _ = shape.place(face)
    box = _find_box(points, face_px, width, height)
    if box is None or not np.isfinite(points).all():
        return None
    corner = np.array([box.x0, box.y0, 0], np.float32)
    points = points - corner
    normals = -compute_normals(points, shape.triangles)
    normals[:, 2] *= -1
    irises = mesh[_POINTS:, :2] - corner[:2] if len(mesh) >= _WITH_IRISES else None
    return _paint_grid(shape, points, irises, normals, box, face_px)


def _find_box(points: Values, face_px: float, width: int, height: int) -> GridBox | None:
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    x0, y0 = max(int(low[0]) // 2 * 2, 0), max(int(low[1]) // 2 * 2, 0)
    x1, y1 = (
        min(math.ceil(float(high[0]) / 2) * 2, width),
        min(math.ceil(float(high[1]) / 2) * 2, height),
    )
    if x1 - x0 < MIN_FACE_PX / 2 or y1 - y0 < MIN_FACE_PX / 2:
        return None
    scale = max(_COARSEST, min(1.0, _GRID_ACROSS_PX / face_px))
    return GridBox(x0, y0, x1, y1, round((x1 - x0) * scale), round((y1 - y0) * scale))


def _paint_grid(
    shape: Shape,
    points: Values,
    irises: Values | None,
    normals: Values,
    box: GridBox,
    face_px: float,
) -> PlacedAvatar | None:
    scale = np.array([box.columns / box.width, box.rows / box.height], np.float32)
    flat = (points[:, :2] + 0.5) * scale - 0.5
    values = np.column_stack([shape.texture, normals[:, :2]]).astype(np.float32)
    order = sort_triangles(flat, points[:, 2], shape.triangles)
    painted = paint_triangles(flat, values, order, box)
    if painted is None:
        return None
    inside, layers = painted
    extend_layers(layers, inside)
    view = MeshView(
        box=box,
        points=points,
        face_px=face_px,
        yaw_rad=measure_yaw(points),
        uv=np.ascontiguousarray(layers[:, :, :2]),
        visible=np.ones((0, 0), np.float32),
        inside=inside,
    )
    # Normals are kinked at the lips and nostrils; a gloss made of kinks sparkles.
    towards = cv2.GaussianBlur(np.ascontiguousarray(layers[:, :, 2:]), (5, 5), 1.2)
    return PlacedAvatar(view, points, irises, normals, np.asarray(towards, np.float32))
