"""Open the portrait's mouth and close its eyes: small vertical warps in the 1280x720 picture.

All numbers are px of that picture. Both functions return a changed copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

Change = Callable[[NDArray[np.uint8], float], NDArray[np.uint8]]

# Left, top, right, bottom of everything that the two functions may touch.
MOUTH_BOX: Final = (504, 350, 760, 552)
EYES_BOX: Final = (536, 226, 740, 290)

_MOUTH_X: Final = 632.0
_MOUTH_HALF_WIDTH: Final = 51.0
_TEETH_Y: Final = 391.0
_CORNER_Y: Final = 366.0
_CHIN_Y: Final = 466.0
_JAW_END_Y: Final = 545.0
_OPEN_PX: Final = 24.0
_THROAT_BGR: Final = (38.0, 26.0, 62.0)
_TONGUE_BGR: Final = (92.0, 84.0, 158.0)
_LASHES_PX: Final = 6.0


class _Eye(NamedTuple):
    """An eye's opening: centre, half width, corners, upper and lower lid, and the lid's crease."""

    x: float
    half_width: float
    corner_y: float
    upper_y: float
    lower_y: float
    crease_y: float


_EYES: Final = (
    _Eye(578.0, 27.0, 266.0, 256.5, 272.0, 242.0),
    _Eye(695.0, 28.0, 270.0, 261.0, 277.0, 248.0),
)


def open_mouth(picture: NDArray[np.uint8], amount: float) -> NDArray[np.uint8]:
    """Lower the jaw by `amount` (0 to 1): lip and chin move down, the gap is dark."""
    left, top, right, bottom = MOUTH_BOX
    y, x = (grid.astype(np.float32) for grid in np.mgrid[top:bottom, left:right])
    across = (x - _MOUTH_X) / _MOUTH_HALF_WIDTH
    line = _TEETH_Y - (_TEETH_Y - _CORNER_Y) * np.minimum(across**2, 1.6)
    drop = amount * _OPEN_PX
    gap = drop * np.sqrt(np.clip(1.0 - across**2, 0.0, 1.0))
    source = y - gap
    for _ in range(3):  # solve y = source + drop of the source's own place
        source = y - drop * _compute_jaw_share(x, source, line)
    source = np.where(y < line, y, np.maximum(source, line))
    patch = cv2.remap(
        picture, x, np.asarray(source, np.float32), cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT
    ).astype(np.float32)
    depth = y - line
    inside = np.clip(depth / 2.5, 0, 1) * np.clip((gap - depth) / 2.5, 0, 1)
    tongue = np.clip((depth - 0.45 * gap) / np.maximum(0.5 * gap, 1.0), 0, 1)[..., None]
    interior = (1 - tongue) * np.array(_THROAT_BGR, np.float32) + tongue * np.array(
        _TONGUE_BGR, np.float32
    )
    patch += (interior - patch) * inside[..., None]
    return _paste(picture, patch, MOUTH_BOX)


def _compute_jaw_share(
    x: NDArray[np.float32], y: NDArray[np.float32], line: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return how much of the jaw's drop the point takes part in: all at the lip and the chin."""
    down = np.clip((y - line) / (_CHIN_Y - _TEETH_Y), 0.0, 1.0)
    half_width = _MOUTH_HALF_WIDTH + 65.0 * down
    across = np.clip(1.0 - ((x - _MOUTH_X) / half_width) ** 2, 0.0, 1.0)
    # A round opening at the lip, a soft rim at the cheeks.
    across = across ** (0.5 + 1.0 * down)
    fade = np.clip((_JAW_END_Y - y) / (_JAW_END_Y - _CHIN_Y), 0.0, 1.0)
    return np.asarray(across * fade * fade * (3 - 2 * fade), np.float32)


def close_eyes(picture: NDArray[np.uint8], amount: float) -> NDArray[np.uint8]:
    """Draw both upper lids down by `amount` (0 to 1); the eyeball stays where it is."""
    left, top, right, bottom = EYES_BOX
    y, x = (grid.astype(np.float32) for grid in np.mgrid[top:bottom, left:right])
    source = y.copy()
    for eye in _EYES:
        arch = np.clip(1.0 - ((x - eye.x) / eye.half_width) ** 2, 0.0, 1.0)
        upper = eye.corner_y + (eye.upper_y - eye.corner_y) * arch
        lower = eye.corner_y + (eye.lower_y - eye.corner_y) * arch
        shift = amount * np.maximum(lower + 1.0 - upper, 0.0)
        # The lashes keep their height; only the skin between them and the crease is stretched.
        lashes = upper - _LASHES_PX
        share = (lashes - eye.crease_y) / np.maximum(lashes + shift - eye.crease_y, 1.0)
        skin = eye.crease_y + (y - eye.crease_y) * share
        lid = np.where(y < lashes + shift, skin, y - shift)
        is_lid = (y > eye.crease_y) & (y < upper + shift) & (arch > 0)
        source = np.where(is_lid, lid, source)
    patch = cv2.remap(
        picture, x, np.asarray(source, np.float32), cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT
    )
    return _paste(picture, patch.astype(np.float32), EYES_BOX)


def _paste(
    picture: NDArray[np.uint8], patch: NDArray[np.float32], box: tuple[int, int, int, int]
) -> NDArray[np.uint8]:
    left, top, right, bottom = box
    changed = picture.copy()
    changed[top:bottom, left:right] = np.clip(patch + 0.5, 0, 255)
    return changed
