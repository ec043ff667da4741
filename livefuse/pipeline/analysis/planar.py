"""What most detectors are fed: a letterboxed picture as float32 planes, each value by a table.

A table of 256 numbers turns uint8 into what the network was trained on in one pass; it is three
times faster than arithmetic on floats and ten times faster than a fresh blob.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np

from livefuse.pipeline.analysis.detect import SmallPicture, round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.frame import Frame
    from livefuse.runtime.session import Network


def create_tables(mean: Sequence[float], std: Sequence[float]) -> NDArray[np.float32]:
    """Return float32 (3, 256): (value / 255 - mean) / std for each channel."""
    values = np.arange(256) / 255.0
    return np.stack([(values - one) / other for one, other in zip(mean, std, strict=True)]).astype(
        np.float32
    )


class PlanarInput:
    """A kept picture at the top left of a kept blob, float32 (1, 3, height, width). One thread."""

    def __init__(
        self,
        size: tuple[int, int],
        canvas: tuple[int, int],
        tables: NDArray[np.float32],
        *,
        bgr: bool = False,
    ) -> None:
        """Fill `size` (width, height) of `canvas`; `tables` are in the blob's order of channels."""
        width, height = size
        self.blob = np.empty((1, 3, canvas[1], canvas[0]), np.float32)
        self.blob[0] = tables[:, 0, None, None]  # around the picture it stays black
        self._shown = [plane[:height, :width] for plane in self.blob[0]]
        self._picture = SmallPicture(size, size)
        self._planes = [np.empty((height, width), np.uint8) for _ in range(3)]
        self._tables = [table.reshape(1, 256) for table in tables]
        self._order = (2, 1, 0) if bgr else (0, 1, 2)

    def fill(self, frame: Frame) -> NDArray[np.float32]:
        """Return the blob with `frame` in it; kept, so valid until the next call."""
        cv2.split(self._picture.draw(frame), self._planes)
        for shown, table, source in zip(self._shown, self._tables, self._order, strict=True):
            cv2.LUT(self._planes[source], table, dst=shown)
        return self.blob

    def get_scale(self, frame: Frame) -> tuple[float, float]:
        """Return how many px of `frame` a px of the blob spans, across and down."""
        return self._picture.get_scale(frame)


class InputShelf:
    """The inputs of one network, one for each size of frame and look. One thread."""

    def __init__(
        self,
        network: Network,
        sides: tuple[int, int],
        multiple: int,
        tables: NDArray[np.float32],
        *,
        bgr: bool = False,
    ) -> None:
        """Use `sides` (long side, light long side) px where the network's size is free.

        Then the canvas is the picture's shape rounded up to `multiple`; else the network's own.
        """
        height, width = network.input_shapes[0][2:4]
        self._fixed = (width, height) if width > 0 and height > 0 else None
        self._sides = sides
        self._multiple = multiple
        self._tables = tables
        self._bgr = bgr
        self._kept: dict[tuple[int, int, int], PlanarInput] = {}

    def get(self, frame: Frame, *, light: bool) -> PlanarInput:
        """Return the input for frames of this size."""
        side = 0 if self._fixed else self._sides[light]
        key = (frame.width, frame.height, side)
        kept = self._kept.get(key)
        if kept is None:
            canvas = self._fixed or (side, side)
            size = fit_within(frame.width, frame.height, canvas)
            if self._fixed is None:
                canvas = (round_up(size[0], self._multiple), round_up(size[1], self._multiple))
            kept = PlanarInput(size, canvas, self._tables, bgr=self._bgr)
            self._kept[key] = kept
        return kept


def fit_within(width: int, height: int, canvas: tuple[int, int]) -> tuple[int, int]:
    """Return the even size within `canvas` that keeps the aspect, not above the frame's."""
    scale = min(1.0, canvas[0] / width, canvas[1] / height)
    return 2 * max(1, math.floor(width * scale / 2)), 2 * max(1, math.floor(height * scale / 2))
