"""What analysis and effects share of picture planes: scaling down, kept buffers, blending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour

T = TypeVar("T", int, "NDArray[np.uint8]")

_OPAQUE: Final = 255
# Red's and blue's share of luma, ITU-R BT.601-7 and BT.709-6.
LUMA_WEIGHTS: Final = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}


def fit_size(width: int, height: int, long_side: int) -> tuple[int, int]:
    """Return the even size within `long_side` px that keeps the aspect, not above the frame's."""
    scale = min(1.0, long_side / max(width, height))
    return 2 * max(1, round(width * scale / 2)), 2 * max(1, round(height * scale / 2))


def shrink_plane(plane: NDArray[np.uint8], small: NDArray[np.uint8]) -> None:
    """Scale `plane` into `small` without aliasing.

    By halves with INTER_AREA, which OpenCV does 30 times faster than any other area ratio, the
    rest (less than a half) bilinearly.
    """
    height, width = small.shape
    while plane.shape[0] >= 2 * height and plane.shape[1] >= 2 * width:
        half_height, half_width = plane.shape[0] // 2, plane.shape[1] // 2
        even = plane[: 2 * half_height, : 2 * half_width]
        if (half_height, half_width) == (height, width):
            cv2.resize(even, (width, height), dst=small, interpolation=cv2.INTER_AREA)
            return
        half = np.empty((half_height, half_width), np.uint8)
        cv2.resize(even, (half_width, half_height), dst=half, interpolation=cv2.INTER_AREA)
        plane = half
    cv2.resize(plane, (width, height), dst=small, interpolation=cv2.INTER_LINEAR)


class Scratch:
    """Buffers that are kept from frame to frame: a fresh large array costs ten times its use.

    One instance for one thread.
    """

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.uint8]] = {}

    def get(self, name: str, height: int, width: int) -> NDArray[np.uint8]:
        """Return an array (height, width) with undefined values; valid until asked for again."""
        kept = self._kept.get(name)
        if kept is None or kept.size < height * width:
            kept = self._kept[name] = np.empty(height * width, np.uint8)
        return kept[: height * width].reshape(height, width)


def blend_plane(
    plane: NDArray[np.uint8], cover: NDArray[np.uint8], mask: NDArray[np.uint8], scratch: Scratch
) -> None:
    """Lay `cover` over `plane` in place where `mask` is 255, in part where it is less.

    All (height, width). Where the mask is 0 the plane keeps its values bit for bit.
    """
    height, width = plane.shape
    kept = scratch.get("blend_kept", height, width)
    laid = scratch.get("blend_laid", height, width)
    cv2.bitwise_not(mask, dst=kept)
    cv2.multiply(plane, kept, dst=kept, scale=1 / _OPAQUE)
    cv2.multiply(cover, mask, dst=laid, scale=1 / _OPAQUE)
    cv2.add(kept, laid, dst=plane)


def convert_colour(rgb: tuple[T, T, T], colour: Colour) -> tuple[T, T, T]:
    """Return Y, U, V (uint8) of R, G, B (0..255; numbers or planes) by `colour`'s matrix.

    Luma weights from ITU-R BT.601-7 and BT.709-6; limited range puts luma in 16..235, chroma in
    16..240.
    """
    red, green, blue = (np.asarray(value, np.float32) for value in rgb)
    red_weight, blue_weight = LUMA_WEIGHTS[colour.matrix]
    y = red_weight * red + (1 - red_weight - blue_weight) * green + blue_weight * blue
    u = (blue - y) / (2 - 2 * blue_weight)
    v = (red - y) / (2 - 2 * red_weight)
    luma, chroma, black = (1.0, 1.0, 0.0) if colour.full_range else (219 / 255, 224 / 255, 16.0)
    return tuple(
        np.clip(np.rint(value), 0, 255).astype(np.uint8)
        for value in (y * luma + black, u * chroma + 128, v * chroma + 128)
    )
