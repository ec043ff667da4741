"""How much of a face's own fine structure is left in a picture, where the face is or near it.

The region from brows to mouth is cut out upright, 44 px wide, in the true picture and, with some
room around, in the one that was shown; what is coarser than a tenth of a face is taken away from
both; then the true one is sought in the other. A cover leaves nothing finer than a sixth of a face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.fuzz.scene import TrueFace

    Luma = NDArray[np.uint8]

BARE: Final = 0.6
"""From here on it is the wearer's face (test_judge.py: bare, shifted and dimmed ones are above 0.8,
avatars below 0.45)."""
LEFT: Final = 0.35
"""From here on something is left of it where it was covered (covered ones are below 0.2)."""
_REGION: Final = (190.0, 84.0, 258.0, 160.0)  # px of the photo: brows, eyes, nose, mouth
_WIDTH: Final = 44
_ROOM: Final = 11
_SIGMA: Final = 2.5
_FLOOR: Final = 0.3  # of the true structure: fainter than this is no likeness
_LEAST_SEEN: Final = 0.6
_REACH: Final = np.ones((11, 11), np.uint8)


def measure_likeness(
    shown: Luma, true: Luma, face: TrueFace, seen: Luma | None = None
) -> float | None:
    """Return the best correlation, -1 to 1; None when too little of the face can be seen.

    `seen` is 255 where the face is in front, if it is not everywhere.
    """
    scale = _WIDTH / (_REGION[2] - _REGION[0])
    height = round((_REGION[3] - _REGION[1]) * scale)
    seen = np.full_like(true, 255) if seen is None else seen
    # Whatever begins beside it, the picture's edge too, is within reach of the filter.
    near = cv2.erode(_cut(seen, face, scale, height, 0, cv2.BORDER_CONSTANT), _REACH)
    mask = (near > 250).astype(np.float32)
    if mask.mean() < _LEAST_SEEN:
        return None
    template = _find_fine(_cut(true, face, scale, height, 0)) * mask
    template -= template.sum() / mask.sum() * mask
    window = _find_fine(_cut(shown, face, scale, height, _ROOM))
    size = float(mask.sum())
    energy = float((template * template).sum()) / size
    if energy < 1.0:
        return None  # no structure in the face itself
    dots = cv2.matchTemplate(window, template, cv2.TM_CCORR)
    powers = cv2.matchTemplate(window * window, mask, cv2.TM_CCORR)
    norms = np.sqrt(np.maximum(powers, 0) + size * energy * _FLOOR**2) * np.sqrt(size * energy)
    return float((dots / norms).max())


def _cut(
    luma: Luma,
    face: TrueFace,
    scale: float,
    height: int,
    room: int,
    border: int = cv2.BORDER_REPLICATE,
) -> Luma:
    """Return the region with `room` px around it, upright."""
    to_photo = np.array(
        [
            [1 / scale, 0.0, _REGION[0] - room / scale],
            [0.0, 1 / scale, _REGION[1] - room / scale],
            [0.0, 0.0, 1.0],
        ]
    )
    size = (_WIDTH + 2 * room, height + 2 * room)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    matrix = face.matrix @ to_photo
    return cv2.warpAffine(luma, matrix, size, flags=flags, borderMode=border)  # type: ignore[return-value] # uint8 stays


def _find_fine(patch: Luma) -> NDArray[np.float32]:
    values = patch.astype(np.float32)
    return values - cv2.GaussianBlur(values, (0, 0), _SIGMA)
