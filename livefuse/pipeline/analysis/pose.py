"""How a head is turned, read from its mesh. Pure.

roll > 0 turns the head clockwise in the picture. With the roll undone, yaw > 0 turns the nose to
the picture's right and pitch > 0 lifts it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Pairs of vertices that mirror one another, image-left first: temples, cheeks, eyes, jaw, mouth.
_LEFT: Final = np.array([234, 127, 93, 33, 172, 61], np.intp)
_RIGHT: Final = np.array([454, 356, 323, 263, 397, 291], np.intp)
# The forehead's top and the chin: in MediaPipe's canonical face both lie at the same depth.
_TOP: Final = 10
_CHIN: Final = 152


def compute_pose(mesh: NDArray[np.float32]) -> tuple[float, float, float]:
    """Return yaw, pitch and roll in radians of a mesh (468 or more, 3), z away from the camera."""
    right = (mesh[_RIGHT] - mesh[_LEFT]).sum(axis=0).tolist()
    down = (mesh[_CHIN] - mesh[_TOP]).tolist()
    # The nose's direction: x right, y down and z away are right-handed, the nose points back.
    x = right[2] * down[1] - right[1] * down[2]
    y = right[0] * down[2] - right[2] * down[0]
    z = right[1] * down[0] - right[0] * down[1]
    roll = math.atan2(right[1], right[0])
    cosine, sine = math.cos(roll), math.sin(roll)
    x, y = cosine * x + sine * y, cosine * y - sine * x
    return math.atan2(x, -z), math.atan2(-y, math.hypot(x, z)), roll


def measure_width(mesh: NDArray[np.float32]) -> float:
    """Return the face's width in px, from ear to ear in depth too, so that a turn keeps it."""
    x, y, z = (mesh[454] - mesh[234]).tolist()
    return math.sqrt(x * x + y * y + z * z)
