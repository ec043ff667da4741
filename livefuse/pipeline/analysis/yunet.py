"""YuNet: at each stride's cells a class, an objectness, a centre and log size, five points.

Wu, Peng and Yu 2023, "YuNet: A Tiny Millisecond-level Face Detector", Machine Intelligence
Research 20; the decoding is OpenCV's FaceDetectorYN. It is fed BGR 0..255.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.analysis.detect import (
    Decoded,
    check_finite,
    join_decoded,
    select_detections,
)
from livefuse.pipeline.analysis.planar import InputShelf, create_tables
from livefuse.pipeline.analysis.scrfd import explain_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

    Array = NDArray[np.float32]

_STRIDES: Final = (8, 16, 32)
_MAX_LOG: Final = 10.0
# Outputs by their last side: how many of each; class and objectness are both (n, 1).
_COUNTS: Final = {1: 6, 4: 3, 10: 3}


class YuNetDetector:
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
            _STRIDES[-1],
            create_tables(network.model.mean, network.model.std),
            bgr=True,
        )

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """See `Detector.detect`."""
        kept = self._shelf.get(frame, light=light)
        outputs = self._network.run({self._network.input_names[0]: kept.fill(frame)})
        decoded = decode_yunet(outputs, kept.blob.shape[3], self._min_score)
        return select_detections(decoded, kept.get_scale(frame))


def decode_yunet(outputs: Sequence[Array], width: int, min_score: float) -> Decoded:
    """Return the cells whose class x objectness is above `min_score`, px of an input `width` wide.

    Raises:
        ModelError: the outputs are not those of this family, or a number is not finite.
    """
    kinds: dict[int, list[Array]] = {1: [], 4: [], 10: []}
    for output in outputs:
        kinds.get(output.shape[-1], []).append(output.reshape(-1, output.shape[-1]))
    if {side: len(found) for side, found in kinds.items()} != _COUNTS:
        raise explain_outputs("the detector", f"{len(outputs)} outputs")
    # Two of each length lie side by side: class and objectness, whose order does not matter.
    scores, boxes, points = (sorted(kinds[side], key=len, reverse=True) for side in _COUNTS)
    found = []
    for index, stride in enumerate(_STRIDES):
        sure = (scores[2 * index] * scores[2 * index + 1]).reshape(-1)
        check_finite(sure)
        chosen = np.flatnonzero(sure > min_score)
        if len(chosen):
            cells = chosen, stride, width // stride
            found.append(_decode_cells(cells, sure, boxes[index], points[index]))
    return join_decoded(found)


def _decode_cells(
    cells: tuple[NDArray[np.intp], int, int], scores: Array, boxes: Array, points: Array
) -> Decoded:
    chosen, stride, columns_per_row = cells
    rows, columns = np.divmod(chosen, columns_per_row)
    corner = np.stack([columns, rows], axis=1).astype(np.float32)
    values, marks = boxes[chosen], points[chosen].reshape(-1, 5, 2)
    check_finite(values, marks)
    centre = (corner + values[:, :2]) * stride
    half = np.exp(np.minimum(values[:, 2:], _MAX_LOG)) * (stride / 2)
    return Decoded(
        np.concatenate([centre - half, centre + half], axis=1),
        scores[chosen],
        (marks + corner[:, None]) * stride,
    )
