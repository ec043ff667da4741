"""A picture -> one tile in which all its tiles are summed, the picture itself kept small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.publish.luma.pattern import TILE_PX

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

STEP_PX: Final = 4
FOLDED: Final = TILE_PX // STEP_PX
_NEAR_SIGMA: Final = 1.5
_AROUND_SIGMA: Final = 3.0
_CALM: Final = 0.02
DETAIL_PX: Final = 360
"""The shorter side of what `whiten_picture` returns, at most."""
_DETAIL_SIGMAS: Final = 3.0, 6.0  # at that size
_DETAIL_UNIT: Final = 40  # back to about what levels are


def fold(luma: Samples, scale: float) -> Samples:
    """Return the (FOLDED, FOLDED) sum of all tiles of `luma`, if a tile's px takes `scale` px."""
    step = 1 / (STEP_PX * scale)
    # By the factor, not to a size: rounding that would make the tiles drift over the picture.
    samples = cv2.resize(luma, None, fx=step, fy=step, interpolation=cv2.INTER_AREA)
    white = _whiten(np.asarray(samples, np.float32), _NEAR_SIGMA, _AROUND_SIGMA)
    rows, columns = (-(-side // FOLDED) * FOLDED for side in white.shape)
    padded = np.zeros((rows, columns), np.float32)
    padded[: white.shape[0], : white.shape[1]] = white
    tiles = padded.reshape(rows // FOLDED, FOLDED, columns // FOLDED, FOLDED)
    return np.asarray(tiles.sum(axis=(0, 2)), np.float32)


def whiten_picture(luma: NDArray[np.uint8]) -> Samples:
    """Return one picture small and whitened: what is to be summed up where the picture moves.

    A mean of pictures as they are is ruled by those places where much changes.
    """
    side = min(luma.shape)
    if side > DETAIL_PX:
        factor = DETAIL_PX / side
        small = cv2.resize(luma, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        luma, side = np.asarray(small, np.uint8), DETAIL_PX
    near, around = (sigma * side / DETAIL_PX for sigma in _DETAIL_SIGMAS)
    return _whiten(luma.astype(np.float32), near, around) * np.float32(_DETAIL_UNIT)


def _whiten(samples: Samples, near: float, around: float) -> Samples:
    """Return what differs from its neighbourhood, as much everywhere, busy places a little less."""
    detail = samples - cv2.GaussianBlur(samples, (0, 0), near)
    power = cv2.GaussianBlur(detail * detail, (0, 0), around)
    even = np.clip(detail / np.sqrt(power + _CALM), -1, 1)
    return np.asarray(even / np.sqrt(np.sqrt(power + 1)), np.float32)
