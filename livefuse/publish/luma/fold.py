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


def fold(luma: Samples, scale: float) -> Samples:
    """Return the (FOLDED, FOLDED) sum of all tiles of `luma`, if a tile's px takes `scale` px."""
    step = 1 / (STEP_PX * scale)
    # By the factor, not to a size: rounding that would make the tiles drift over the picture.
    samples = cv2.resize(luma, None, fx=step, fy=step, interpolation=cv2.INTER_AREA)
    white = _whiten(np.asarray(samples, np.float32))
    rows, columns = (-(-side // FOLDED) * FOLDED for side in white.shape)
    padded = np.zeros((rows, columns), np.float32)
    padded[: white.shape[0], : white.shape[1]] = white
    tiles = padded.reshape(rows // FOLDED, FOLDED, columns // FOLDED, FOLDED)
    return np.asarray(tiles.sum(axis=(0, 2)), np.float32)


def _whiten(samples: Samples) -> Samples:
    """Return what differs from its neighbourhood, as much everywhere, busy places a little less."""
    detail = samples - cv2.GaussianBlur(samples, (0, 0), _NEAR_SIGMA)
    power = cv2.GaussianBlur(detail * detail, (0, 0), _AROUND_SIGMA)
    even = np.clip(detail / np.sqrt(power + _CALM), -1, 1)
    return np.asarray(even / np.sqrt(np.sqrt(power + 1)), np.float32)
