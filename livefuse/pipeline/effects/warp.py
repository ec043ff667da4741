"""Aligned crops for networks: from a frame's planes straight to the numbers a network takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.crop import CropReader
from livefuse.pipeline.landmarks import get_landmarks
from livefuse.pipeline.planes import LUMA_WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Face
    from livefuse.frame import Colour, Frame
    from livefuse.geometry import Similarity


_MIN_APART_PX: Final = 4.0  # between the eyes: below, there is no face to see


class Conversion(NamedTuple):
    """R, G, B (0..1) = luma * Y + red_by_v, ... with chroma as it is stored, each plus an offset.

    And back: rows of Y, U, V (0..255 as stored) by R, G, B in 0..1, and their offsets.
    """

    luma: float
    red_by_v: float
    green_by_u: float
    green_by_v: float
    blue_by_u: float
    offsets: tuple[float, float, float]
    back: tuple[tuple[float, float, float], ...]
    back_offsets: tuple[float, float, float]


def create_conversion(colour: Colour) -> Conversion:
    """Return how `colour` maps stored Y, U, V to R, G, B in 0..1, and back."""
    red, blue = LUMA_WEIGHTS[colour.matrix]
    green = 1.0 - red - blue
    luma_span, chroma_span, black = 219.0, 224.0, 16.0
    if colour.full_range:
        luma_span, chroma_span, black = 255.0, 255.0, 0.0
    luma = 1.0 / luma_span
    red_by_v, blue_by_u = 2 * (1 - red) / chroma_span, 2 * (1 - blue) / chroma_span
    green_by_u, green_by_v = -blue_by_u * blue / green, -red_by_v * red / green
    dark = -black * luma
    return Conversion(
        luma,
        red_by_v,
        green_by_u,
        green_by_v,
        blue_by_u,
        (dark - 128 * red_by_v, dark - 128 * (green_by_u + green_by_v), dark - 128 * blue_by_u),
        (
            (red * luma_span, green * luma_span, blue * luma_span),
            (-red / blue_by_u, -green / blue_by_u, (1.0 - blue) / blue_by_u),
            ((1.0 - red) / red_by_v, -green / red_by_v, -blue / red_by_v),
        ),
        (black, 128.0, 128.0),
    )


class CropBlob:
    """Reads aligned crops as (1, 3, size, size) float32: RGB in 0..1, then (x - mean) / std.

    By the frame's own colour matrix. One instance for one thread.
    """

    def __init__(
        self,
        size: int,
        mean: tuple[float, ...] = (0.0, 0.0, 0.0),
        std: tuple[float, ...] = (1.0, 1.0, 1.0),
    ) -> None:
        """`size` is a multiple of 4."""
        self.size = size
        self._mean, self._std = mean, std
        self._reader = CropReader(size)
        self._u = np.empty((size, size), np.uint8)
        self._v = np.empty((size, size), np.uint8)
        self._blob = np.empty((1, 3, size, size), np.float32)

    def read(self, frame: Frame, to_crop: Similarity) -> NDArray[np.float32]:
        """Return the crop's numbers, kept: valid until the next call.

        `to_crop` takes px of the frame to px of the crop; outside the frame its edge is repeated.
        """
        y, u, v = self._reader.read_planes(frame, to_crop)
        size = (self.size, self.size)
        cv2.resize(u, size, dst=self._u, interpolation=cv2.INTER_LINEAR)
        cv2.resize(v, size, dst=self._v, interpolation=cv2.INTER_LINEAR)
        way = create_conversion(frame.colour)
        red, green, blue = self._blob[0]
        scale = [1.0 / value for value in self._std]
        shift = [
            (offset - mean) / std
            for offset, mean, std in zip(way.offsets, self._mean, self._std, strict=True)
        ]
        _mix(y, way.luma * scale[0], self._v, way.red_by_v * scale[0], shift[0], red)
        _mix(y, way.luma * scale[1], self._u, way.green_by_u * scale[1], shift[1], green)
        # scaleAdd would want float; `blue` is free until its own turn.
        _mix(self._v, way.green_by_v * scale[1], self._v, 0.0, 0.0, blue)
        cv2.add(green, blue, dst=green)
        _mix(y, way.luma * scale[2], self._u, way.blue_by_u * scale[2], shift[2], blue)
        for plane, mean, std in zip((red, green, blue), self._mean, self._std, strict=True):
            np.clip(plane, -mean / std, (1.0 - mean) / std, out=plane)
        return self._blob


def _mix(
    one: NDArray[np.uint8],
    one_share: float,
    other: NDArray[np.uint8],
    other_share: float,
    offset: float,
    out: NDArray[np.float32],
) -> None:
    cv2.addWeighted(one, one_share, other, other_share, offset, dst=out, dtype=cv2.CV_32F)


def get_points(face: Face) -> NDArray[np.float32] | None:
    """Return the five points (5, 2) that crops are aligned by, or None when there are none.

    A face that is only held (not seen now, and without a mesh) has none to go by.
    """
    if face.mesh is None and face.track.missed:
        return None
    points = get_landmarks(face, 5)
    if points is None or not np.hypot(*(points[1] - points[0]), dtype=np.float64) > _MIN_APART_PX:
        return None
    return points
