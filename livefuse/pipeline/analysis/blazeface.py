"""BlazeFace, full range: the light profile. A letterboxed 192 px input, one anchor each 4 px.

Bazarevsky et al. 2019, "BlazeFace: Sub-millisecond Neural Face Detection on Mobile GPUs",
arXiv:1907.05047. Outputs are px of the input relative to the anchor: centre, size, then six points
(image-left eye, image-right eye, nose, mouth, and the two ears).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.analysis.detect import (
    Decoded,
    SmallPicture,
    check_finite,
    select_detections,
)
from livefuse.pipeline.planes import fit_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

_SIDE: Final = 192
_STRIDE: Final = 4
# Its square box ends at brows and mouth; CenterFace's, which covers are fitted to, at hairline and
# chin: found by comparing both on the test pictures.
_BOX_HEIGHT: Final = 1.25
_BOX_LIFT: Final = 0.06
# The mouth is one point; its corners lie about this share of the eyes' distance to either side.
_MOUTH_HALF_WIDTH: Final = 0.4


class BlazeFaceDetector:
    """A `Detector`. Keeps its input, so one instance serves one thread."""

    def __init__(
        self, network: Network, long_side: int, light_long_side: int, min_score: float
    ) -> None:
        """Report faces from `min_score` up; the sides are not asked: it has one size."""
        del long_side, light_long_side
        self._network = network
        self._min_score = min_score
        self._blob = np.empty((1, _SIDE, _SIDE, 3), np.float32)
        self._size = (0, 0)
        self._picture: SmallPicture | None = None

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:  # noqa: ARG002 - has one size only
        """See `Detector.detect`; `light` changes nothing."""
        size = (frame.width, frame.height)
        if self._picture is None or size != self._size:
            self._size = size
            self._picture = SmallPicture(fit_size(*size, _SIDE), (_SIDE, _SIDE))
        np.multiply(self._picture.draw(frame), np.float32(1 / 127.5), out=self._blob[0])
        np.subtract(self._blob, np.float32(1.0), out=self._blob)
        values, logits = self._network.run({self._network.input_names[0]: self._blob})
        decoded = decode_blazeface(values[0], logits[0, :, 0], min_score=self._min_score)
        return select_detections(decoded, self._picture.get_scale(frame))


def decode_blazeface(
    values: NDArray[np.float32], logits: NDArray[np.float32], *, min_score: float
) -> Decoded:
    """Return the anchors above `min_score` in px of the input.

    `values` is (2304, 16), `logits` (2304,).

    Raises:
        ModelError: a number is not finite.
    """
    check_finite(logits)
    scores = 1.0 / (1.0 + np.exp(-np.clip(logits, -80.0, 80.0)))
    chosen = np.nonzero(scores > min_score)[0]
    picked = values[chosen]
    check_finite(picked)
    cells = _SIDE // _STRIDE
    anchors = np.stack([chosen % cells + 0.5, chosen // cells + 0.5], axis=1) * _STRIDE
    centre, size = picked[:, :2] + anchors, picked[:, 2:4] * (1.0, _BOX_HEIGHT)
    centre[:, 1] -= picked[:, 3] * _BOX_LIFT
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1).astype(np.float32)
    points = (picked[:, 4:].reshape(-1, 6, 2) + anchors[:, None]).astype(np.float32)
    eyes = (points[:, 1] - points[:, 0]) * _MOUTH_HALF_WIDTH
    marks = np.stack(
        [points[:, 0], points[:, 1], points[:, 2], points[:, 3] - eyes, points[:, 3] + eyes], axis=1
    )
    return Decoded(boxes, scores[chosen].astype(np.float32), marks)
