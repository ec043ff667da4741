"""A picture -> one tile in which all its tiles are summed, the picture itself kept small.

What is in the picture besides the mark is its noise, and there is much more of it in some places
than in others. So each place counts by how little of it there is: by the inverse of the power
around it, as in any mean of values that are not equally sure.
"""

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
DETAIL_PX: Final = 360
"""The shorter side of what `whiten` returns, unless more is asked for."""
_NEAR_SIGMA: Final = 1.5
_AROUND_SIGMA: Final = 1.2  # a letter's: the paper beside it is to count in full
_CALM: Final = 0.5  # levels squared: the mark itself, and what no encoder keeps
_PLACES: Final = 0.7  # how much more a place counts that was calm for longer than others


def fold(detail: Samples, scale: float) -> Samples:
    """Return the (FOLDED, FOLDED) sum of all tiles of `detail`, if a tile's px takes `scale` px."""
    step = 1 / (STEP_PX * scale)
    # By the factor, not to a size: rounding that would make the tiles drift over the picture.
    samples = cv2.resize(detail, None, fx=step, fy=step, interpolation=cv2.INTER_AREA)
    rows, columns = (-(-side // FOLDED) * FOLDED for side in samples.shape)
    padded = np.zeros((rows, columns), np.float32)
    padded[: samples.shape[0], : samples.shape[1]] = samples
    tiles = padded.reshape(rows // FOLDED, FOLDED, columns // FOLDED, FOLDED)
    return np.asarray(tiles.sum(axis=(0, 2)), np.float32)


def whiten(luma: NDArray[np.uint8] | Samples, side_px: int = DETAIL_PX) -> tuple[Samples, Samples]:
    """Return what differs from its neighbourhood, weighted, and the weights; 2 ms at 720p.

    The shorter side of both is `side_px` at most. They are to be summed over time, then joined.
    """
    factor = min(side_px / min(luma.shape), 1)
    small = (
        luma
        if factor == 1
        else cv2.resize(luma, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    )
    samples = np.asarray(small, np.float32)
    unit = min(samples.shape) / DETAIL_PX
    detail = samples - cv2.GaussianBlur(samples, (0, 0), _NEAR_SIGMA * unit)
    power = cv2.GaussianBlur(detail * detail, (0, 0), _AROUND_SIGMA * unit)
    weights = np.asarray(1 / (power + np.float32(_CALM)), np.float32)
    return np.asarray(detail * weights, np.float32), weights


def join(weighted: Samples, weights: Samples, count: int = 1) -> Samples:
    """Return the mean of what was whitened in `count` pictures, each place as sure as it is."""
    return np.asarray(weighted / weights * (weights / count) ** _PLACES, np.float32)
