"""The face at rest, seen from the front: MediaPipe's canonical model; how a mesh lies against it.

`CANONICAL` is float32 (468, 3) in face widths (234 to 454): x to the picture's right, y down, z
away from the camera, the origin between the two sides. Read-only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FILE: Final = Path(__file__).parent / "data" / "facemesh_canonical.json"

CANONICAL: Final[NDArray[np.float32]] = np.array(
    json.loads(_FILE.read_text("utf-8"))["points468"], np.float32
)
CANONICAL.setflags(write=False)

STABLE: Final[NDArray[np.int32]] = np.array(
    [10, 151, 9, 168, 6, 197, 195, 5, 4, 234, 454, 127, 356, 93, 323, 162, 389, 21, 251, 54, 284,
     67, 297, 33, 263, 133, 362, 1],
    np.int32,
)  # fmt: skip
"""Points that hardly move when a face speaks, smiles or blinks."""
STABLE.setflags(write=False)

_TINY: Final = 1e-9


class Pose(NamedTuple):
    """q = scale * rotation p + shift, for points p at rest. float32, rotation (3, 3)."""

    scale: float
    rotation: NDArray[np.float32]
    shift: NDArray[np.float32]

    def apply(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return float32 (n, 3) images of (n, 3) points."""
        return np.asarray(
            points @ (np.float32(self.scale) * self.rotation.T) + self.shift, np.float32
        )

    def undo(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what `apply` takes to `points` (n, 3)."""
        return np.asarray((points - self.shift) @ (self.rotation / np.float32(self.scale)))


def fit_pose(source: NDArray[np.float32], target: NDArray[np.float32]) -> Pose:
    """Return the turn, even scale and shift with the least squares error from (n, 3) to (n, 3).

    Kabsch 1976 with Umeyama's scale (1991), no reflections.

    Raises:
        ValueError: the source points coincide.
    """
    source_mean, target_mean = source.mean(axis=0), target.mean(axis=0)
    p, q = source - source_mean, target - target_mean
    spread = float((p * p).sum())
    if not spread > _TINY:
        raise ValueError("the source points coincide")
    left, sizes, right = np.linalg.svd((q.T @ p).astype(np.float64))
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0])
    rotation = ((left * sign) @ right).astype(np.float32)
    scale = float((sizes * sign).sum()) / spread
    return Pose(scale, rotation, target_mean - np.float32(scale) * (rotation @ source_mean))


def fit_head(points: NDArray[np.float32]) -> Pose:
    """Return where a head is by its mesh (468 or more, 3): from `CANONICAL` to px."""
    return fit_pose(CANONICAL[STABLE], np.asarray(points, np.float32)[STABLE])
