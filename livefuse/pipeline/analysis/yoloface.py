"""YOLOv8-face: one column a candidate: centre, size, score, and five points with how sure each is.

Everything is in px of the input already (derronqi/yolov8-face).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.analysis.detect import Decoded, check_finite, select_detections
from livefuse.pipeline.analysis.planar import InputShelf, create_tables
from livefuse.pipeline.analysis.scrfd import explain_outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

    Array = NDArray[np.float32]

_VALUES: Final = 20  # 4 of the box, the score, 5 x (x, y, sure)
_SCORE: Final = 4
_MULTIPLE: Final = 32


class YoloFaceDetector:
    """A `Detector`. Keeps its inputs, so one instance serves one thread."""

    def __init__(
        self, network: Network, long_side: int, light_long_side: int, min_score: float
    ) -> None:
        """Use inputs of `long_side` px, or of `light_long_side`; report from `min_score` up."""
        self._network = network
        self._min_score = min_score
        self._shelf = InputShelf(
            network,
            (long_side, light_long_side),
            _MULTIPLE,
            create_tables(network.model.mean, network.model.std),
        )

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """See `Detector.detect`."""
        kept = self._shelf.get(frame, light=light)
        outputs = self._network.run({self._network.input_names[0]: kept.fill(frame)})
        decoded = decode_yoloface(outputs[0], self._min_score)
        return select_detections(decoded, kept.get_scale(frame))


def decode_yoloface(output: Array, min_score: float) -> Decoded:
    """Return the candidates above `min_score` of (1, 20, n) or (1, n, 20), px of the input.

    Raises:
        ModelError: that is not its shape, or a number is not finite.
    """
    table: Array = output.reshape(output.shape[-2], output.shape[-1])
    if table.shape[0] != _VALUES:
        table = table.T
    if table.shape[0] != _VALUES:
        raise explain_outputs("the detector", f"an output of shape {output.shape}")
    check_finite(table[_SCORE])
    picked = table[:, np.flatnonzero(table[_SCORE] > min_score)]
    check_finite(picked)
    half = picked[2:4] / 2
    boxes = np.concatenate([picked[:2] - half, picked[:2] + half]).T
    points = picked[_SCORE + 1 :].T.reshape(-1, 5, 3)[:, :, :2]
    return Decoded(np.ascontiguousarray(boxes), picked[_SCORE].copy(), np.ascontiguousarray(points))
