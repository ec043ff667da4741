"""Faces in pictures that were read back from a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2

from tests.faces import analyse, create_frame_by_bgr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Box = tuple[int, int, int, int]


def find_faces(bgr: NDArray[np.uint8]) -> list[Box]:
    """Return the boxes (left, top, right, bottom) of the faces in a picture."""
    state = analyse(create_frame_by_bgr(bgr), ("detect",))
    height, width = bgr.shape[:2]
    boxes = [face.track.box for face in state.faces]
    return [
        (max(int(b.x0), 0), max(int(b.y0), 0), min(int(b.x1), width), min(int(b.y1), height))
        for b in boxes
    ]


def measure_detail(bgr: NDArray[np.uint8], box: Box) -> float:
    """Return how much fine structure there is in `box`: the deviation of its Laplacian."""
    left, top, right, bottom = box
    grey = cv2.cvtColor(bgr[top:bottom, left:right], cv2.COLOR_BGR2GRAY)
    return float(cv2.Laplacian(grey, cv2.CV_32F).std())


def is_covered(shown: NDArray[np.uint8], raw: NDArray[np.uint8], box: Box) -> bool:
    """Say whether `box` has lost its fine structure in `shown`."""
    return measure_detail(shown, box) < 0.5 * measure_detail(raw, box)
