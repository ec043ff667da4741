"""Faces in pictures that lie on their side or stand on their head: config `detect.rotations`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.face import Box, Detection
from livefuse.frame import Frame, create_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.pipeline.analysis.detect import Detector

_QUARTERS: Final = (1, 3, 2)
_CODES: Final = {
    1: cv2.ROTATE_90_CLOCKWISE,
    2: cv2.ROTATE_180,
    3: cv2.ROTATE_90_COUNTERCLOCKWISE,
}


class RotatingDetector:
    """A `Detector` that turns the picture when another finds nothing in it as it is.

    The other turns are tried on full looks only. The turn that found a face is tried first from
    then on, so a clip that lies on its side costs no more than one that stands. One thread.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._turn = 0
        self._turned: dict[tuple[int, int], Frame] = {}

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """See `Detector.detect`."""
        first = self._turn
        found = self._look(frame, first, light=light)
        if found or light:
            return found
        for turn in (0, *_QUARTERS):
            if turn != first and (found := self._look(frame, turn, light=False)):
                self._turn = turn
                break
        return found

    def _look(self, frame: Frame, turn: int, *, light: bool) -> list[Detection]:
        """Return what is found in `frame` turned clockwise by `turn` quarters, in its own px."""
        if not turn:
            return list(self._detector.detect(frame, light=light))
        size = (frame.width, frame.height) if turn == 2 else (frame.height, frame.width)  # noqa: PLR2004 - quarters
        turned = self._turned.get(size)
        if turned is None:
            self._turned = {size: create_frame(*size), **dict(list(self._turned.items())[:1])}
            turned = self._turned[size]
        for plane, out in (
            (frame.y, turned.y),
            (frame.u, turned.u),
            (frame.v, turned.v),
        ):
            cv2.rotate(plane, _CODES[turn], dst=out)
        found = self._detector.detect(turned, light=light)
        return [_turn_back(one, turn, frame.width, frame.height) for one in found]


def _turn_back(detection: Detection, turn: int, width: int, height: int) -> Detection:
    """Return a detection in the turned picture in px of the one of `width` x `height`."""
    corners = np.array(detection.box, np.float64).reshape(2, 2)
    box = _turn_points(corners, turn, width, height)
    points = _turn_points(np.asarray(detection.landmarks5, np.float64), turn, width - 1, height - 1)
    x0, y0 = box.min(axis=0).tolist()
    x1, y1 = box.max(axis=0).tolist()
    return Detection(Box(x0, y0, x1, y1), detection.score, points.astype(np.float32))


def _turn_points(
    points: NDArray[np.float64], turn: int, width: float, height: float
) -> NDArray[np.float64]:
    """Undo a clockwise turn of a picture whose last point is (width, height)."""
    x, y = points[:, 0], points[:, 1]
    turned: Sequence[NDArray[np.float64]] = {
        1: (y, height - x),
        2: (width - x, height - y),
        3: (width - y, x),
    }[turn]
    return np.stack(turned, axis=1)
