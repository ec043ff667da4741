"""CenterFace: heat map, sizes, offsets and landmarks at a quarter of the input's resolution.

Xu et al. 2019, "CenterFace: Joint Face Detection and Alignment Using Face as Point",
arXiv:1911.03599, section 3: centre = (cell + offset) x 4, size = exp(scale) x 4, landmarks are
fractions of the box from its corner. This export numbers them y first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.pipeline.analysis.detect import (
    Decoded,
    SmallPicture,
    check_finite,
    round_up,
    select_detections,
)
from livefuse.pipeline.planes import fit_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

_STRIDE: Final = 4
_MULTIPLE: Final = 32
_NEIGHBOURS: Final = np.ones((3, 3), np.uint8)


class _Input(NamedTuple):
    blob: NDArray[np.float32]  # (1, 3, height, width), kept
    picture: SmallPicture


class CenterFaceDetector:
    """A `Detector`. Keeps its inputs, so one instance serves one thread."""

    def __init__(
        self, network: Network, long_side: int, light_long_side: int, min_score: float
    ) -> None:
        """Use inputs of `long_side` px, or of `light_long_side`; report from `min_score` up."""
        self._network = network
        self._long_side = long_side
        self._light_long_side = light_long_side
        self._min_score = min_score
        self._inputs: dict[tuple[int, int, int], _Input] = {}

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """See `Detector.detect`."""
        kept = self._get_input(frame, self._light_long_side if light else self._long_side)
        for plane, values in zip(kept.blob[0], cv2.split(kept.picture.draw(frame)), strict=True):
            np.copyto(plane, values)
        heat, sizes, offsets, landmarks = self._network.run(
            {self._network.input_names[0]: kept.blob}
        )
        decoded = decode_centerface(
            heat[0, 0], sizes[0], offsets[0], landmarks[0], min_score=self._min_score
        )
        return select_detections(decoded, kept.picture.get_scale(frame))

    def _get_input(self, frame: Frame, long_side: int) -> _Input:
        key = (frame.width, frame.height, long_side)
        kept = self._inputs.get(key)
        if kept is None:
            size = fit_size(frame.width, frame.height, long_side)
            width, height = (round_up(side, _MULTIPLE) for side in size)
            blob = np.empty((1, 3, height, width), np.float32)
            kept = self._inputs[key] = _Input(blob, SmallPicture(size, (width, height)))
        return kept


def decode_centerface(
    heat: NDArray[np.float32],
    sizes: NDArray[np.float32],
    offsets: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    *,
    min_score: float,
) -> Decoded:
    """Return the peaks of `heat` (h, w) above `min_score`, in px of the input.

    `sizes` (2, h, w) log (height, width), `offsets` (2, h, w) (y, x), `landmarks` (10, h, w).

    Raises:
        ModelError: a number is not finite.
    """
    check_finite(heat)
    # A face lights many cells; its peak is the cell that suppression would keep.
    peaks = cv2.dilate(heat, _NEIGHBOURS)
    chosen = np.flatnonzero((heat > min_score) & (heat >= peaks))
    rows, columns = np.divmod(chosen, heat.shape[1])
    log_sizes, shifts, points = (
        values.reshape(len(values), -1)[:, chosen] for values in (sizes, offsets, landmarks)
    )
    check_finite(log_sizes, shifts, points)
    height, width = np.exp(np.minimum(log_sizes, 10.0)) * _STRIDE
    y0 = (rows + shifts[0] + 0.5) * _STRIDE - height / 2
    x0 = (columns + shifts[1] + 0.5) * _STRIDE - width / 2
    marks = np.empty((len(rows), 5, 2), np.float32)
    marks[:, :, 0] = (points[1::2] * width + x0).T
    marks[:, :, 1] = (points[0::2] * height + y0).T
    boxes = np.stack([x0, y0, x0 + width, y0 + height], axis=1).astype(np.float32)
    return Decoded(boxes, heat.reshape(-1)[chosen], marks)
