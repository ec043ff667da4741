"""Which way a face mesh's skin faces, and how well it is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.effects.mesh_regions import POINTS, UV_PX, get_regions, smooth_step
from livefuse.pipeline.topology import TRIANGLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

_FADE_FROM, _FADE_OVER = 0.10, 0.28  # z of a normal: turned away .. seen well
_NEAR_OVAL_UV_PX: Final = (30.0, 90.0)


def compute_normals(points: Values) -> Values:
    """Return unit normals (468, 3) of a mesh; z > 0 faces the camera.

    Each vertex takes the sum of its triangles' cross products, so large ones weigh more.
    """
    a, b, c = (points[TRIANGLES[:, i]] for i in range(3))
    (ax, ay, az), (bx, by, bz) = (b - a).T, (c - a).T
    crossed = np.zeros((len(TRIANGLES) + 1, 3), np.float32)  # the last row stays 0: a filler
    crossed[:-1, 0] = ay * bz - az * by
    crossed[:-1, 1] = az * bx - ax * bz
    crossed[:-1, 2] = ax * by - ay * bx
    summed = crossed[_TRIANGLES_OF_POINT].sum(axis=1)
    length = np.sqrt((summed * summed).sum(axis=1, keepdims=True))
    return np.asarray(summed / np.maximum(length, 1e-6), np.float32)


def compute_visibility(points: Values) -> Values:
    """Return 0..1 per vertex: skin that turns away fades, but only near the oval.

    Inside the face (nostrils, lids) a texel that is seen at all is shown as it is.
    """
    z = compute_normals(points)[:, 2]
    turned = 1 - np.clip((z - _FADE_FROM) / _FADE_OVER, 0.0, 1.0)
    return np.asarray(1 - turned * _NEAR_OVAL, np.float32)


def _index_triangles() -> NDArray[np.int32]:
    """Return the triangles of each vertex (468, most), filled up with a row of zeros' index."""
    lists: list[list[int]] = [[] for _ in range(POINTS)]
    for index, corners in enumerate(TRIANGLES.tolist()):
        for corner in corners:
            lists[corner].append(index)
    most = max(map(len, lists))
    return np.array([row + [len(TRIANGLES)] * (most - len(row)) for row in lists], np.int32)


def _weigh_near_oval() -> Values:
    x, y = np.clip(np.rint(UV_PX).astype(int), 0, 511).T
    return 1 - smooth_step(*_NEAR_OVAL_UV_PX, get_regions().distance[y, x])


_TRIANGLES_OF_POINT: Final = _index_triangles()
_NEAR_OVAL: Final = _weigh_near_oval()
