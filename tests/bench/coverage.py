"""What share of the faces in a file is hidden in the file that was made of it.

A reference face is one that CenterFace finds at 640 px with a score of 0.5 in a frame of the
source. It counts as covered when its detail is gone from the same frame of the output: of the px
within the face (the box's inscribed ellipse at 0.9 of its size) that carry detail in the source,
at least 90 % have lost more than half of it, and so have all five landmarks. Nothing is asked of
the pipeline: only the two files are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np

from livefuse.config import ModelsConfig
from livefuse.frame import create_frame
from livefuse.geometry import clip_box, create_box
from livefuse.pipeline.analysis.centerface import CenterFaceDetector
from livefuse.runtime.session import SessionCache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from livefuse.face import Detection

_LONG_SIDE = 640
_MIN_SCORE = 0.5
_FACE_SHARE = 0.9
_PX_SHARE = 0.9
_DETAIL_LEFT = 0.5
_DETAIL_SCALE = 1 / 16  # of the face's width: eyes, lips and lines are finer than that
_LEAST_DETAIL = 4.0  # grey levels; less is skin and what an encoder makes of it


@dataclass
class Coverage:
    """How many reference faces there are, the share that is covered, and frames with bare ones."""

    faces: int
    share: float
    bare_frames: list[int]


def measure_coverage(source: Path, output: Path, every: int = 1) -> Coverage:
    """Compare every `every`-th frame of the two files.

    Raises:
        ValueError: the output has another number of frames.
    """
    network = SessionCache(ModelsConfig()).get("centerface", threads=2)
    detector = CenterFaceDetector(network, _LONG_SIDE, _LONG_SIDE, _MIN_SCORE)
    faces = 0
    bare: list[int] = []
    for index, (before, after) in enumerate(zip(_read(source), _read(output), strict=True)):
        if index % every:
            continue
        frame = create_frame(before.shape[1], before.shape[0] * 2 // 3)
        frame.buffer[:] = before
        for face in detector.detect(frame):
            faces += 1
            if not is_covered(frame.y, after[: frame.height], face):
                bare.append(index)
    return Coverage(faces, 1 - len(bare) / max(faces, 1), bare)


def is_covered(before: NDArray[np.uint8], after: NDArray[np.uint8], face: Detection) -> bool:
    """Say whether `face`, found in the luma `before`, is hidden in the luma `after`."""
    height, width = before.shape
    box = clip_box(face.box, width, height)
    x0, y0, x1, y1 = int(box.x0), int(box.y0), int(np.ceil(box.x1)), int(np.ceil(box.y1))
    scale = _DETAIL_SCALE * face.box.width
    detail, left = (_measure_detail(luma[y0:y1, x0:x1], scale) for luma in (before, after))
    is_gone = left < _DETAIL_LEFT * detail
    x, y = (face.box.x0 + face.box.x1) / 2, (face.box.y0 + face.box.y1) / 2
    inner = create_box(x, y, face.box.width * _FACE_SHARE, face.box.height * _FACE_SHARE)
    rows, columns = np.mgrid[y0:y1, x0:x1]
    radius = np.hypot((columns - x) / (inner.width / 2), (rows - y) / (inner.height / 2))
    counts = (radius <= 1) & (detail > _LEAST_DETAIL)
    if not counts.any():
        return False
    marks = face.landmarks5.round().astype(int) - (x0, y0)
    marks = marks[((marks >= 0) & (marks < (x1 - x0, y1 - y0))).all(axis=1)]
    at_marks = [is_gone[r, c] or detail[r, c] <= _LEAST_DETAIL for c, r in marks]
    return bool(is_gone[counts].mean() >= _PX_SHARE and all(at_marks))


def _measure_detail(luma: NDArray[np.uint8], scale: float) -> NDArray[np.float32]:
    """Return how much brightness varies around each px at less than `scale` px."""
    values = luma.astype(np.float32)
    fine = values - cv2.GaussianBlur(values, (0, 0), scale)
    return np.sqrt(np.asarray(cv2.GaussianBlur(fine * fine, (0, 0), 2 * scale), np.float32))


def _read(path: Path) -> Iterator[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield np.asarray(frame.reformat(format="yuv420p").to_ndarray(), np.uint8)
