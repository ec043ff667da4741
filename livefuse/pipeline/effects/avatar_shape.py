"""The mesh of a drawn avatar: the face's own, rings beyond its outline, and ears.

An avatar is drawn as it is seen from the front: a texture px is a place before the face at rest
(`canonical.CANONICAL`), `TEXTURE_PX` of them to a face width. What lies beyond the face hangs on
the points of its oval, so that it goes along with jaw and brow.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.pipeline.canonical import CANONICAL, fit_head
from livefuse.pipeline.topology import OVAL, TRIANGLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.canonical import Pose

    Values = NDArray[np.float32]

TEXTURE_PX: Final = 512
# The drawing's frame in face widths: left, top, right, bottom.
LEFT, TOP, RIGHT, BOTTOM = -0.82, -1.12, 0.82, 0.86
WIDTH_PX: Final = round((RIGHT - LEFT) * TEXTURE_PX)
HEIGHT_PX: Final = round((BOTTOM - TOP) * TEXTURE_PX)
_CENTRE_Y: Final = 0.06  # of the oval


class Ring(NamedTuple):
    """How far a ring lies beyond the oval, in face widths: at the top, the sides and the jaw."""

    top: float
    side: float
    jaw: float
    back: float


class Ear(NamedTuple):
    """The left one of two ears that grow out of the outermost ring; face widths.

    `feet` are points of the oval, whose places on that ring the ear stands on, the outer first;
    `rim` goes from the inner foot over the tip to the outer one, `middle` lies between.
    """

    feet: tuple[int, ...]
    middle: tuple[float, float, float]
    rim: tuple[tuple[float, float, float], ...]


@dataclass(slots=True, frozen=True, eq=False)
class Shape:
    """A mesh larger than the face. `rest` float32 (n, 3) face widths, the first 468 canonical.

    `anchors` int32 (n - 468,): the point of the face that each further point hangs on.
    `triangles` int32 (m, 3), turned as the face's; `texture` float32 (n, 2) px of the texture.
    """

    rest: Values
    anchors: NDArray[np.int32]
    triangles: NDArray[np.int32]
    texture: Values

    def place(self, mesh: Values) -> tuple[Values, Pose]:
        """Return all points float32 (n, 3) px for a face's `mesh` (468, 3), and the head's pose."""
        pose = fit_head(mesh)
        hanging = self.rest[468:] - CANONICAL[self.anchors]
        beyond = mesh[self.anchors] + hanging @ (np.float32(pose.scale) * pose.rotation.T)
        return np.concatenate([mesh, beyond.astype(np.float32)]), pose


def to_texture(points: Values) -> Values:
    """Return texture px, float32 (n, 2), of places in face widths (n, 2 or 3)."""
    return np.asarray(
        (points[:, :2] - np.array([LEFT, TOP], np.float32)) * TEXTURE_PX - 0.5, np.float32
    )


def create_shape(rings: tuple[Ring, ...], ears: tuple[Ear, ...] = ()) -> Shape:
    """Return the face with `rings` around it, the inner first, and each ear on both sides."""
    points: list[Values] = [np.asarray(CANONICAL)]
    anchors: list[int] = []
    triangles: list[NDArray[np.int32]] = [np.asarray(TRIANGLES)]
    inner = np.asarray(OVAL, np.int32)
    for ring in rings:
        outer = np.arange(len(OVAL), dtype=np.int32) + 468 + len(anchors)
        points.append(_create_ring(ring))
        anchors += OVAL.tolist()
        triangles.append(_join_rings(inner, outer))
        inner = outer
    for ear in ears:
        for side in (1, -1):
            first = 468 + len(anchors)
            feet = [OVAL.tolist().index(point) * side % len(OVAL) for point in ear.feet]
            places = np.array([ear.middle, *ear.rim], np.float32)
            points.append(places * np.array([side, 1, 1], np.float32))
            anchors += [int(OVAL[feet[len(feet) // 2]])] * len(places)
            round_it = [*range(first + 1, first + len(places)), *inner[feet].tolist()]
            round_it.append(round_it[0])
            fan = [(first, one, other) for one, other in itertools.pairwise(round_it)]
            triangles.append(np.array(fan, np.int32))
    rest = np.concatenate(points).astype(np.float32)
    return Shape(
        rest, np.array(anchors, np.int32), _turn(np.concatenate(triangles), rest), to_texture(rest)
    )


def _create_ring(ring: Ring) -> Values:
    """Return the points of `ring` (36, 3): outwards from the oval, and a little back."""
    oval = CANONICAL[OVAL]
    x, y = oval[:, 0], oval[:, 1] - _CENTRE_Y
    length = np.hypot(x, y)
    # 1 at the top, 0 at the sides, -1 at the chin.
    height = -y / length
    top, jaw = np.clip(height, 0, 1) ** 1.2, np.clip(-height, 0, 1) ** 1.2
    reach = ring.side + (ring.top - ring.side) * top + (ring.jaw - ring.side) * jaw
    outwards = np.stack([x / length, y / length], axis=1) * reach[:, None]
    back = ring.back * (0.35 + 0.65 * np.maximum(top, 1 - top - jaw))
    return np.asarray(np.column_stack([oval[:, :2] + outwards, oval[:, 2] + back]), np.float32)


def _join_rings(inner: NDArray[np.int32], outer: NDArray[np.int32]) -> NDArray[np.int32]:
    after_inner, after_outer = np.roll(inner, -1), np.roll(outer, -1)
    return np.concatenate(
        [
            np.stack([inner, outer, after_inner], axis=1),
            np.stack([after_inner, outer, after_outer], axis=1),
        ]
    ).astype(np.int32)


def _turn(triangles: NDArray[np.int32], rest: Values) -> NDArray[np.int32]:
    """Return `triangles` so that each has a positive area from the front."""
    a, b, c = (rest[triangles[:, i]] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    turned = triangles.copy()
    # The face's own triangles are turned by its UV map, where no nostril is seen from below.
    wrong = (area < 0) & (np.arange(len(triangles)) >= len(TRIANGLES))
    turned[wrong] = turned[wrong][:, ::-1]
    return turned


def compute_normals(points: Values, triangles: NDArray[np.int32]) -> Values:
    """Return unit normals (n, 3) of all points; z > 0 faces the camera."""
    a, b, c = (points[triangles[:, i]] for i in range(3))
    crossed = np.cross(b - a, c - a).astype(np.float32)
    summed = np.zeros_like(points)
    for corner in range(3):
        for axis in range(3):
            summed[:, axis] += np.bincount(
                triangles[:, corner], weights=crossed[:, axis], minlength=len(points)
            ).astype(np.float32)
    length = np.sqrt((summed * summed).sum(axis=1, keepdims=True))
    return np.asarray(summed / np.maximum(length, 1e-6), np.float32)
