"""Paste back: an aligned crop, through its mask, into the planes of the face's region.

The crop's luma, chroma and mask go through one 4-channel warp, multiplied by the mask beforehand:
what is left is one multiply and one saturating add in each plane. Only the mask's bounds are
worked on, so the cost grows with the area that is painted, never with the frame's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.geometry import (
    Similarity,
    create_matrix,
    invert_similarity,
)
from livefuse.pipeline.effects.warp import create_conversion
from livefuse.pipeline.planes import Scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.frame import Colour, Frame

_OPAQUE: Final = 255
_MAX_SHRINK: Final = 2.0  # a bilinear warp that shrinks by more than this skips px
_CHANNELS: Final = 4


class Units(NamedTuple):
    """R, G, B in 0..1 = scale * value + offset."""

    scale: float = 1.0
    offset: float = 0.0


SHARES: Final = Units()
SIGNED: Final = Units(0.5, 0.5)
"""-1..1, as many networks have it."""


class Paster:
    """Pastes crops of any size. One instance for one thread; its buffers are kept."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._floats: dict[str, NDArray[np.float32]] = {}

    def paste(
        self,
        frame: Frame,
        rgb: NDArray[np.float32],
        to_crop: Similarity,
        mask: NDArray[np.uint8],
        units: Units = SHARES,
    ) -> None:
        """Lay `rgb` over `frame` in place: wholly where `mask` is 255, not at all where it is 0.

        `rgb` is (3, size, size), R, G, B in `units`, which it is clipped to (in place); `mask` is
        0 along its rim, and as large or a whole number of times smaller. `to_crop` takes px of the
        frame to px of the crop.
        """
        ratio = rgb.shape[1] // mask.shape[0]
        x, y, width, height = _find_bounds(mask)
        if width == 0:
            return
        part = self._scratch.get("part", ratio * height, ratio * width)
        size = (part.shape[1], part.shape[0])
        here = mask[y : y + height, x : x + width]
        cv2.resize(here, size, dst=part, interpolation=cv2.INTER_LINEAR)
        x, y, width, height = ratio * x, ratio * y, ratio * width, ratio * height
        planes = [plane[y : y + height, x : x + width] for plane in rgb]
        moved = to_crop._replace(tx=to_crop.tx - x, ty=to_crop.ty - y)
        level = 0
        while moved.scale >= _MAX_SHRINK and min(part.shape) >= 4:  # noqa: PLR2004 - two px of the half
            planes, part, moved = self._halve(planes, part, moved, level)
            level += 1
        layer = self._create_layer(planes, part, frame.colour, units)
        self._lay(frame, layer, invert_similarity(moved))

    def _halve(
        self,
        planes: list[NDArray[np.float32]],
        mask: NDArray[np.uint8],
        to_crop: Similarity,
        level: int,
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.uint8], Similarity]:
        height, width = mask.shape[0] // 2, mask.shape[1] // 2
        even = (slice(2 * height), slice(2 * width))
        size = (width, height)
        small = [self._get_floats(f"half{level}{index}", height, width) for index in range(3)]
        for plane, out in zip(planes, small, strict=True):
            cv2.resize(plane[even], size, dst=out, interpolation=cv2.INTER_AREA)
        half = self._scratch.get(f"half{level}", height, width)
        cv2.resize(mask[even], size, dst=half, interpolation=cv2.INTER_AREA)
        a, b, tx, ty = to_crop
        # x = 2 x_half + 0.5
        return small, half, Similarity(a / 2, b / 2, (tx - 0.5) / 2, (ty - 0.5) / 2)

    def _create_layer(
        self,
        planes: list[NDArray[np.float32]],
        mask: NDArray[np.uint8],
        colour: Colour,
        units: Units,
    ) -> NDArray[np.uint8]:
        """Return (height, width, 4): Y, U, V, each times the mask, and the mask."""
        height, width = mask.shape
        way = create_conversion(colour)
        scale, shift = units
        for plane in planes:
            np.clip(plane, -shift / scale, (1.0 - shift) / scale, out=plane)
        red, green, blue = planes
        partial = self._get_floats("partial", height, width)
        channels = [self._scratch.get(f"channel{index}", height, width) for index in range(3)]
        for channel, row, offset in zip(channels, way.back, way.back_offsets, strict=True):
            shifted = offset + shift * sum(row)
            cv2.addWeighted(red, row[0] * scale, green, row[1] * scale, shifted, dst=partial)
            cv2.addWeighted(partial, 1.0, blue, row[2] * scale, 0.0, dst=channel, dtype=cv2.CV_8U)
            cv2.multiply(channel, mask, dst=channel, scale=1 / _OPAQUE)
        layer = self._scratch.get("layer", height, _CHANNELS * width)
        layer = layer.reshape(height, width, _CHANNELS)
        cv2.merge([*channels, mask], dst=layer)
        return layer

    def _lay(self, frame: Frame, layer: NDArray[np.uint8], to_frame: Similarity) -> None:
        x0, y0, x1, y1 = _find_region(frame, layer.shape[1], layer.shape[0], to_frame)
        if x1 <= x0 or y1 <= y0:
            return
        width, height = x1 - x0, y1 - y0
        warped = self._scratch.get("warped", height, _CHANNELS * width)
        warped = warped.reshape(height, width, _CHANNELS)
        matrix = create_matrix(to_frame._replace(tx=to_frame.tx - x0, ty=to_frame.ty - y0))
        cv2.warpAffine(layer, matrix, (width, height), dst=warped, flags=cv2.INTER_LINEAR)
        channels = [self._scratch.get(f"region{i}", height, width) for i in range(_CHANNELS)]
        cv2.split(warped, channels)
        luma, u, v, kept = channels
        cv2.bitwise_not(kept, dst=kept)
        _blend(frame.y[y0:y1, x0:x1], luma, kept)
        small_kept = self._scratch.get("half_kept", height // 2, width // 2)
        small = self._scratch.get("half_plane", height // 2, width // 2)
        size = (width // 2, height // 2)
        cv2.resize(kept, size, dst=small_kept, interpolation=cv2.INTER_AREA)
        for plane, channel in ((frame.u, u), (frame.v, v)):
            cv2.resize(channel, size, dst=small, interpolation=cv2.INTER_AREA)
            _blend(plane[y0 // 2 : y1 // 2, x0 // 2 : x1 // 2], small, small_kept)

    def _get_floats(self, name: str, height: int, width: int) -> NDArray[np.float32]:
        kept = self._floats.get(name)
        if kept is None or kept.size < height * width:
            kept = self._floats[name] = np.empty(height * width, np.float32)
        return kept[: height * width].reshape(height, width)


def _find_bounds(mask: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Return x, y, width, height of what is not 0, a px wider where there is room; 0s for none."""
    x, y, width, height = cv2.boundingRect(mask)
    if width == 0:
        return 0, 0, 0, 0
    x0, y0 = max(x - 1, 0), max(y - 1, 0)
    x1, y1 = min(x + width + 1, mask.shape[1]), min(y + height + 1, mask.shape[0])
    return x0, y0, x1 - x0, y1 - y0


def _blend(plane: NDArray[np.uint8], layer: NDArray[np.uint8], kept: NDArray[np.uint8]) -> None:
    """Keep `kept` (0..255) of `plane` and add `layer`, which is multiplied by the rest already."""
    cv2.multiply(plane, kept, dst=plane, scale=1 / _OPAQUE)
    cv2.add(plane, layer, dst=plane)


def _find_region(
    frame: Frame, width: int, height: int, to_frame: Similarity
) -> tuple[int, int, int, int]:
    """Return the even bounds x0, y0, x1, y1 in `frame` of a layer of `width` x `height` px."""
    # In plain floats: numpy takes ten times longer for four points.
    a, b, tx, ty = to_frame
    x, y = tx - a + b, ty - b - a
    across, down = width + 1, height + 1
    left = x + min(0.0, a * across) + min(0.0, -b * down)
    right = x + max(0.0, a * across) + max(0.0, -b * down)
    top = y + min(0.0, b * across) + min(0.0, a * down)
    bottom = y + max(0.0, b * across) + max(0.0, a * down)
    x0, y0 = max(math.floor(left / 2) * 2, 0), max(math.floor(top / 2) * 2, 0)
    x1 = min(math.ceil((right + 1) / 2) * 2, frame.width)
    y1 = min(math.ceil((bottom + 1) / 2) * 2, frame.height)
    return x0, y0, x1, y1
