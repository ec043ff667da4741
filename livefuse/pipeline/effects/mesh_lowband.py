"""Low bands: what of a face is light. A blur that sees skin only (normalised convolution)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float32]

MAD_TO_SD: Final = 1.4826
"""Median absolute deviation to standard deviation, of a normal distribution."""

_LITTLE: Final = 1e-4


def blur(picture: Values, sigma_px: float) -> Values:
    """Return a Gaussian blur that repeats the edge, cut off at 2.6 sigma: OpenCV goes to 4."""
    side = 2 * max(round(2.6 * sigma_px), 1) + 1
    return np.asarray(
        cv2.GaussianBlur(picture, (side, side), sigma_px, borderType=cv2.BORDER_REPLICATE),
        np.float32,
    )


def blur_weighted(
    picture: Values, weight: Values, sigma_px: float, wide_px: int, share: float
) -> Values:
    """Return the mean of `picture` (h, w, c) near each px, seen through `weight` (h, w) >= 0.

    Knutsson and Westin 1993, "Normalized and differential convolution": blur(x w) / blur(w). Where
    little weight is near, `share` of a box mean over `wide_px` takes over, then the mean of all.
    """
    stacked = np.dstack([picture * weight[:, :, None], weight])
    near = blur(stacked, sigma_px)
    wide = np.asarray(cv2.blur(stacked, (wide_px, wide_px), borderType=cv2.BORDER_REPLICATE))
    total = stacked.sum(axis=(0, 1))
    wide += total * (_LITTLE / max(float(total[-1]), _LITTLE))
    mean = wide[:, :, :-1] / np.maximum(wide[:, :, -1:], _LITTLE * _LITTLE)
    return np.asarray((near[:, :, :-1] + share * mean) / (near[:, :, -1:] + share), np.float32)


def blur_by_mask(picture: Values, mask: Values, sigma_px: float) -> Values:
    """Return a blur of `picture` (h, w, c) that takes nothing from where `mask` is 0."""
    # OpenCV drops the axis of a single channel.
    summed = blur(picture * mask[:, :, None], sigma_px).reshape(picture.shape)
    weight = blur(mask, sigma_px)[:, :, None]
    return np.asarray(np.where(weight > _LITTLE, summed / np.maximum(weight, _LITTLE), picture))
