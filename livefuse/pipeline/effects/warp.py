"""Aligned crops for networks: from a frame's planes straight to the numbers a network takes."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.crop import FloatReader
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


@cache
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

    By the frame's own colour matrix. A picture's few illegal colours lie a little outside of 0..1:
    no network minds, and clipping is as dear as all the rest. One instance for one thread.
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
        self._reader = FloatReader(size)
        half = size // 2
        self._mixed = np.empty((half, half), np.float32)
        self._pairs = np.empty((half, half, 2), np.float32)
        self._blob = np.empty((1, 3, size, size), np.float32)

    def read(
        self, frame: Frame, to_crop: Similarity, into: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Return the crop's numbers: in `into`, else kept and valid until the next call.

        `to_crop` takes px of the frame to px of the crop; outside the frame its edge is repeated.
        """
        way = create_conversion(frame.colour)
        blob = self._blob if into is None else into
        red, green, blue = blob[0]
        # Luma lies where green is to be, which is made of it last.
        u, v = self._reader.read(frame, to_crop, green)
        cv2.addWeighted(u, way.green_by_u, v, way.green_by_v, 0.0, dst=self._mixed)
        terms = ((red, v, way.red_by_v), (blue, u, way.blue_by_u), (green, self._mixed, 1.0))
        for index, (plane, chroma, gain) in zip((0, 2, 1), terms, strict=True):
            mean, std = self._mean[index], self._std[index]
            offset = (way.offsets[index] - mean) / std
            # Each chroma px twice in its row, and once for each of two rows of luma.
            wide = self._widen(chroma)
            for row in (0, 1):
                cv2.addWeighted(
                    green[row::2], way.luma / std, wide, gain / std, offset, dst=plane[row::2]
                )
        return blob

    def _widen(self, chroma: NDArray[np.float32]) -> NDArray[np.float32]:
        cv2.merge([chroma, chroma], dst=self._pairs)
        return self._pairs.reshape(self.size // 2, self.size)


def get_points(face: Face) -> NDArray[np.float32] | None:
    """Return the five points (5, 2) that crops are aligned by, or None when there are none.

    A face that is only held (not seen now, and without a mesh) has none to go by.
    """
    if face.mesh is None and face.track.missed:
        return None
    points = get_landmarks(face, 5)
    if points is None:
        return None
    (x0, y0), (x1, y1) = points[:2].tolist()
    return points if math.hypot(x1 - x0, y1 - y0) > _MIN_APART_PX else None
