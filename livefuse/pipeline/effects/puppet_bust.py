"""A portrait's mesh with rings round it: the head bends hair and neck along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.effects.mesh_regions import SIDES
from livefuse.pipeline.topology import LIPS_INNER, OVAL, TRIANGLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.canonical import Pose

    Values = NDArray[np.float32]

# Rings round the oval: how far out (1 is the oval) and how much of the head's move they follow.
_RINGS: Final = ((1.45, 0.8), (2.1, 0.35), (3.0, 0.0))
_RING_DEPTH: Final = 0.25  # face widths behind the oval, each ring


def create_bust(mesh: Values) -> tuple[Values, NDArray[np.int32]]:
    """Return a portrait's mesh with rings round it and its mouth closed: points, triangles.

    The 36 points of each ring lie outwards of the oval's, a little behind.
    """
    oval = mesh[OVAL]
    middle = oval.mean(axis=0)
    face_px = float(np.linalg.norm(mesh[SIDES[1]] - mesh[SIDES[0]]))
    points, triangles = [mesh], [np.asarray(TRIANGLES), close_mouth()]
    inner = np.asarray(OVAL, np.int32)
    for index, (reach, _) in enumerate(_RINGS):
        ring = middle + (oval - middle) * np.float32(reach)
        ring[:, 2] = oval[:, 2] + _RING_DEPTH * face_px * (index + 1)
        outer = np.arange(len(OVAL), dtype=np.int32) + 468 + index * len(OVAL)
        points.append(ring)
        after, beyond = np.roll(inner, -1), np.roll(outer, -1)
        triangles.append(np.stack([inner, outer, after], axis=1))
        triangles.append(np.stack([after, outer, beyond], axis=1))
        inner = outer
    still = np.concatenate(points).astype(np.float32)
    joined = np.concatenate(triangles).astype(np.int32)
    a, b, c = (still[joined[:, i]] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    wrong = (area < 0) & (np.arange(len(joined)) >= len(TRIANGLES))
    joined[wrong] = joined[wrong][:, ::-1]
    return still, joined


def close_mouth() -> NDArray[np.int32]:
    """Return triangles (18, 3) between the inner lips, which the mesh leaves open."""
    lips = LIPS_INNER.tolist()
    upper, lower = lips[:11], [lips[0], *lips[:10:-1], lips[10]]
    triangles = []
    for i in range(10):
        if i:
            triangles.append((upper[i], upper[i + 1], lower[i]))
        if i < 9:  # noqa: PLR2004 - the last corner has one triangle only
            triangles.append((upper[i + 1], lower[i + 1], lower[i]))
    return np.array(triangles, np.int32)


def move_rings(still: Values, head: Pose) -> Values:
    """Return the rings' points (n, 3) of a bust `still` (468 + n, 3) when the head moves."""
    rings = still[468:]
    share = np.repeat([share for _, share in _RINGS], len(OVAL)).astype(np.float32)[:, None]
    return np.asarray(rings + (head.apply(rings) - rings) * share, np.float32)
