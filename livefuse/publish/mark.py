"""The label of generated pictures: what people see. The record for programs is made in sei.py.

It is drawn into the planes after all else, just before the one encode, so that every output has it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import MarkConfig
    from livefuse.frame import Frame

_LABEL: Final = Path(__file__).parent / "data" / "label.png"
_LABEL_LETTER_PX: Final = 96  # the size of the letters in that picture
_MIN_LETTER_PX: Final = 10
_BOX_OPACITY: Final = 0.75  # 0.55 is hard to read on a white page
_BLACK, _WHITE, _GREY = 16, 235, 128


class Label:
    """The visible label at one frame size. One thread."""

    def __init__(self, config: MarkConfig) -> None:
        self._config = config
        self._size = (0, 0)
        self._planes: list[_PlaneLabel] = []

    def draw(self, frame: Frame) -> None:
        """Lay the label over `frame` in place."""
        frame.fill_planes()
        if self._size != (frame.width, frame.height):
            self._size = (frame.width, frame.height)
            self._planes = _create_planes(self._config, frame.width, frame.height)
        for plane, label in zip((frame.y, frame.u, frame.v), self._planes, strict=True):
            label.lay(plane)


class _PlaneLabel:
    """plane = plane * keep / 255 + add, within a box: 8-bit, so that it costs 15 us."""

    def __init__(self, x: int, y: int, keep: NDArray[np.uint8], add: NDArray[np.uint8]) -> None:
        self._x, self._y = x, y
        self._keep, self._add = keep, add
        self._kept = np.empty_like(keep)

    def lay(self, plane: NDArray[np.uint8]) -> None:
        height, width = self._keep.shape
        part = plane[self._y : self._y + height, self._x : self._x + width]
        cv2.multiply(part, self._keep, dst=self._kept, scale=1 / 255)
        cv2.add(self._kept, self._add, dst=part)


@cache
def _read_label() -> NDArray[np.uint8]:
    data = np.frombuffer(_LABEL.read_bytes(), np.uint8)
    picture = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise RuntimeError(f"{_LABEL} is not a picture: install livefuse again")
    return np.asarray(picture, np.uint8)


def _create_planes(config: MarkConfig, width: int, height: int) -> list[_PlaneLabel]:
    letters = _read_label()
    letter_px = max(config.height * min(width, height), _MIN_LETTER_PX)
    scale = letter_px / _LABEL_LETTER_PX
    scale = min(scale, width / letters.shape[1], height / letters.shape[0])
    w, h = (max(2, int(side * scale) // 2 * 2) for side in letters.shape[::-1])
    alphas = [
        np.asarray(cv2.resize(letters, size, interpolation=cv2.INTER_AREA) / 255, np.float32)
        for size in ((w, h), (w // 2, h // 2))
    ]
    gap = int(0.02 * min(width, height)) // 2 * 2
    right, bottom = "right" in config.corner, "bottom" in config.corner
    x = max(width - w - gap, 0) // 2 * 2 if right else min(gap, width - w)
    y = max(height - h - gap, 0) // 2 * 2 if bottom else min(gap, height - h)
    luma = _create_plane(x, y, alphas[0], _BLACK, _WHITE)
    chroma = [_create_plane(x // 2, y // 2, alphas[1], _GREY, _GREY) for _ in range(2)]
    return [luma, *chroma]


def _create_plane(x: int, y: int, alpha: NDArray[np.float32], box: int, letter: int) -> _PlaneLabel:
    keep = (1 - _BOX_OPACITY) * (1 - alpha)
    add = _BOX_OPACITY * box * (1 - alpha) + letter * alpha
    return _PlaneLabel(x, y, _quantise(255 * keep), _quantise(add))


def _quantise(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(values).astype(np.uint8)
