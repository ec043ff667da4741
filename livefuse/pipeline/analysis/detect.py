"""Finding faces: a small aspect-true picture from the planes, a network, boxes.

Each family of detectors knows how its network is fed and read; they meet in `Detector`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import cv2
import numpy as np

from livefuse.errors import ModelError
from livefuse.face import Box, Detection
from livefuse.frame import create_frame
from livefuse.pipeline.planes import shrink_plane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.frame import Frame

_NMS_IOU: Final = 0.3
_MAX_CANDIDATES: Final = 200
# Eyes, nose, mouth corners as shares of a box from hairline to chin.
_BOX_POINTS: Final = np.array(
    [(0.31, 0.41), (0.69, 0.41), (0.5, 0.61), (0.34, 0.78), (0.66, 0.78)], np.float32
)


class Detector(Protocol):
    """Finds faces in a frame without changing it."""

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """Return faces in px of the frame, the surest first, none twice.

        With `light` the input is smaller: it costs a fraction and misses small faces.

        Raises:
            ModelError: the network failed or its numbers are not finite.
        """
        ...


class Decoded(NamedTuple):
    """Candidates before non-maximum suppression, in px of the network's input."""

    boxes: NDArray[np.float32]  # (n, 4): x0, y0, x1, y1
    scores: NDArray[np.float32]  # (n,)
    landmarks5: NDArray[np.float32]  # (n, 5, 2)


class SmallPicture:
    """Scales a frame's planes into the top left of a kept canvas and turns that into RGB.

    Always by BT.601's matrix: a detector does not see the difference, and OpenCV has it ready.
    One instance for one thread.
    """

    def __init__(self, size: tuple[int, int], canvas: tuple[int, int]) -> None:
        """Fill `size` (width, height) at the top left of `canvas`, all even; the rest is black."""
        small = create_frame(*canvas)
        width, height = size
        self._size = size
        self._buffer = small.buffer
        self._y = small.y[:height, :width]
        self._u = small.u[: height // 2, : width // 2]
        self._v = small.v[: height // 2, : width // 2]
        self._rgb = np.empty((canvas[1], canvas[0], 3), np.uint8)

    def draw(self, frame: Frame) -> NDArray[np.uint8]:
        """Return the canvas as RGB (height, width, 3); kept, so valid until the next call."""
        shrink_plane(frame.y, self._y)
        shrink_plane(frame.u, self._u)
        shrink_plane(frame.v, self._v)
        return cv2.cvtColor(self._buffer, cv2.COLOR_YUV2RGB_I420, dst=self._rgb)  # type: ignore[return-value] # dst is uint8

    def get_scale(self, frame: Frame) -> tuple[float, float]:
        """Return how many px of `frame` a px of the canvas spans, across and down."""
        return frame.width / self._size[0], frame.height / self._size[1]


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple that is not below `value`."""
    return math.ceil(value / multiple) * multiple


def check_finite(*arrays: NDArray[np.float32]) -> None:
    """Refuse NaN and infinity: compared with a threshold they would look like "no face".

    Raises:
        ModelError: a value is not finite.
    """
    for array in arrays:
        if not np.isfinite(array).all():
            raise ModelError("the detector's output is not finite", hint="run  livefuse doctor")


def join_decoded(parts: Sequence[Decoded]) -> Decoded:
    """Return all candidates of `parts` in one."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        empty = np.empty((0, 4), np.float32)
        return Decoded(empty, empty[:, 0], np.empty((0, 5, 2), np.float32))
    boxes, scores, marks = zip(*parts, strict=True)
    return Decoded(np.concatenate(boxes), np.concatenate(scores), np.concatenate(marks))


def guess_landmarks5(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (n, 5, 2) points where a face seen from the front has them in its box (n, 4).

    For networks that say boxes only: a step that aligns by points is then only about right.
    """
    corner, size = boxes[:, None, :2], (boxes[:, 2:] - boxes[:, :2])[:, None]
    return corner + size * _BOX_POINTS


def select_detections(decoded: Decoded, scale: tuple[float, float]) -> list[Detection]:
    """Return what is left of the candidates when each face is named once, in px of the frame.

    Greedy non-maximum suppression of the surest `_MAX_CANDIDATES`.
    """
    order = np.argsort(-decoded.scores, kind="stable")[:_MAX_CANDIDATES]
    boxes = decoded.boxes[order]
    kept = order[_suppress(boxes)]
    x, y = scale
    corners = (decoded.boxes[kept] * np.array((x, y, x, y), np.float32)).tolist()
    marks = decoded.landmarks5[kept] * np.array(scale, np.float32)
    scores = decoded.scores[kept].tolist()
    return [
        Detection(Box(*corner), score, mark)
        for corner, score, mark in zip(corners, scores, marks, strict=True)
    ]


def _suppress(boxes: NDArray[np.float32]) -> list[int]:
    """Return which of `boxes` (n, 4), the surest first, no surer one kept overlaps too much."""
    if len(boxes) < 2:  # noqa: PLR2004 - nothing to compare
        return list(range(len(boxes)))
    overlaps = _compute_overlaps(boxes)
    kept: list[int] = []
    gone = np.zeros(len(boxes), np.bool_)
    while True:
        index = int(np.argmin(gone))  # the first that is not gone
        if gone[index]:
            return kept
        kept.append(index)
        gone |= overlaps[index]
        gone[index] = True  # a box without an area does not overlap itself


def _compute_overlaps(boxes: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return (n, n): whether two boxes share more of their union than `_NMS_IOU`."""
    x0, y0, x1, y1 = np.ascontiguousarray(boxes.T)
    width = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    height = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    areas = (x1 - x0) * (y1 - y0)
    overlaps: NDArray[np.bool_] = shared > _NMS_IOU * (areas[:, None] + areas - shared)
    return overlaps
