"""Sets of landmarks by their count: 5, 68, 106, 203 and 468 points, whatever network found them.

`get_landmarks` is how effects and networks ask. A set that a network of its own found (config
align.extra) is given as it is; 5, 68 and 106 are otherwise read off the mesh. 203 points have no
likeness in the mesh and come from their own network only.

Left and right are the picture's, in the order of iBUG's 68 points: the jaw runs from image-left to
image-right, image-left brow and eye come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face

    Indices = NDArray[np.intp]

MESH_POINTS: Final = 468


def _freeze(*indices: int) -> Indices:
    array = np.array(indices, np.intp)
    array.setflags(write=False)
    return array


# Five points: the corners of either eye, not its iris, since a glance aside must not turn the crop;
# the nose's tip and the point beneath it, between which detectors and templates have the nose.
_PAIRS: Final = _freeze(33, 133, 362, 263, 1, 4)
_MOUTH: Final = _freeze(61, 291)

# iBUG's 68 points (Sagonas et al. 2013) at the mesh's nearest vertices. Of a turned head the mesh's
# oval is the whole face's, where annotators draw the jaw that is seen.
MESH_TO_68: Final = _freeze(
    # jaw, 0 to 16
    *(127, 234, 93, 132, 58, 172, 150, 176, 152, 400, 379, 397, 288, 361, 323, 454, 356),
    # image-left brow, 17 to 21; image-right brow, 22 to 26
    *(70, 63, 105, 66, 107),
    *(336, 296, 334, 293, 300),
    # bridge of the nose, 27 to 30; its base, 31 to 35
    *(168, 197, 5, 4),
    *(98, 97, 2, 326, 327),
    # image-left eye, 36 to 41; image-right eye, 42 to 47
    *(33, 160, 158, 133, 153, 144),
    *(362, 385, 387, 263, 373, 380),
    # outer lips, 48 to 59; inner lips, 60 to 67
    *(61, 40, 37, 0, 267, 270, 291, 321, 314, 17, 84, 91),
    *(78, 81, 13, 311, 308, 402, 14, 178),
)

# insightface's 106 points (2d106det) that iBUG's 68 are among, and the rest as the mean of two
# vertices: every second point of the jaw, the brows' lower edges, lids, pupils, the nose's sides.
POINTS_106_AS_68: Final = _freeze(
    *(1, 10, 12, 14, 16, 3, 5, 7, 0, 23, 21, 19, 32, 30, 28, 26, 17),
    *(43, 48, 49, 51, 50),
    *(102, 103, 104, 105, 101),
    *(72, 73, 74, 86),
    *(78, 79, 80, 85, 84),
    *(35, 41, 42, 39, 37, 36),
    *(89, 95, 96, 93, 91, 90),
    *(52, 64, 63, 71, 67, 68, 61, 58, 59, 53, 56, 55),
    *(65, 66, 62, 70, 69, 57, 60, 54),
)
_JAW_BETWEEN_106: Final = (9, 11, 13, 15, 2, 4, 6, 8, 24, 22, 20, 18, 31, 29, 27, 25)
_BETWEEN_106: Final[dict[int, tuple[int, int]]] = {
    44: (53, 53),
    45: (52, 52),
    47: (65, 65),
    46: (55, 55),
    97: (285, 285),
    98: (295, 295),
    99: (282, 282),
    100: (283, 283),
    40: (159, 159),
    33: (145, 145),
    94: (386, 386),
    87: (374, 374),
    34: (159, 145),
    38: (159, 145),
    88: (386, 374),
    92: (386, 374),
    75: (188, 188),
    76: (129, 129),
    77: (64, 64),
    81: (412, 412),
    82: (358, 358),
    83: (294, 294),
}


def _pair_106() -> NDArray[np.intp]:
    pairs = np.zeros((106, 2), np.intp)
    pairs[POINTS_106_AS_68] = MESH_TO_68[:, None]
    pairs[list(_JAW_BETWEEN_106)] = np.stack([MESH_TO_68[:16], MESH_TO_68[1:17]], axis=1)
    for point, pair in _BETWEEN_106.items():
        pairs[point] = pair
    pairs.setflags(write=False)
    return pairs


_MESH_TO_106: Final = _pair_106()
COUNTS: Final = (5, 68, 106, 203, 468)


def get_landmarks(face: Face, count: int) -> NDArray[np.float32] | None:
    """Return float32 (count, 2) px of the frame, or None when they are not known.

    `count` is 5, 68, 106, 203 or 468. 106 points are numbered as insightface's 2d106det does. Five
    points are the track's when the face has no mesh.

    Raises:
        ValueError: there is no such set.
    """
    if count not in COUNTS:
        raise ValueError(f"no set of {count} landmarks: there are {', '.join(map(str, COUNTS))}")
    if count == len(face.track.landmarks5):
        return get_landmarks5(face)
    own = face.landmarks.get(count)
    if own is not None:
        return own
    return None if face.mesh is None else _convert_mesh(face.mesh, count)


def get_landmarks5(face: Face) -> NDArray[np.float32]:
    """Return float32 (5, 2) px: the mesh's, or the track's when the face has no mesh."""
    own = face.landmarks.get(5)
    if own is not None:
        return own
    if face.mesh is not None:
        return convert_mesh_to_5(face.mesh)
    return np.asarray(face.track.landmarks5, np.float32)


def convert_mesh_to_5(mesh: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32 (5, 2) of a mesh (468 or more, 2 or 3): eyes, nose tip, mouth corners."""
    points = np.empty((5, 2), np.float32)
    both = mesh[_PAIRS, :2].reshape(3, 2, 2)
    points[:3] = (both[:, 0] + both[:, 1]) / 2
    points[3:] = mesh[_MOUTH, :2]
    return points


def convert_mesh_to_68(mesh: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32 (68, 2), iBUG's points at the mesh's nearest vertices."""
    return np.asarray(mesh[MESH_TO_68, :2], np.float32)


def convert_mesh_to_106(mesh: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32 (106, 2), an approximation: see `_BETWEEN_106`."""
    return np.asarray(mesh[_MESH_TO_106, :2].mean(axis=1), np.float32)


def _convert_mesh(mesh: NDArray[np.float32], count: int) -> NDArray[np.float32] | None:
    convert = _CONVERSIONS.get(count)
    return convert(mesh) if convert is not None else None


def _cut_mesh(mesh: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(mesh[:MESH_POINTS, :2], np.float32)


_CONVERSIONS: Final = {
    5: convert_mesh_to_5,
    68: convert_mesh_to_68,
    106: convert_mesh_to_106,
    MESH_POINTS: _cut_mesh,
}
