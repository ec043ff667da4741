"""RetinaFace, in both of its shapes.

insightface's retinaface_10g speaks SCRFD's language. The original answers with one list of all
strides: offsets from prior boxes, two classes, five points; it is fed BGR less a mean.
Deng et al. 2019, "RetinaFace: Single-stage Dense Face Localisation in the Wild", arXiv:1905.00641;
priors and variances are those of biubug6's Pytorch_Retinaface.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.pipeline.analysis.detect import Decoded, check_finite, select_detections
from livefuse.pipeline.analysis.planar import InputShelf, create_tables
from livefuse.pipeline.analysis.scrfd import ScrfdDetector, explain_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.pipeline.analysis.detect import Detector
    from livefuse.runtime.session import Network

    Array = NDArray[np.float32]

_PRIOR_OUTPUTS: Final = 3
_MULTIPLE: Final = 32
# Of each stride: the sides of its two prior boxes, px.
_PRIORS: Final = {8: (16, 32), 16: (64, 128), 32: (256, 512)}
_ANCHORS: Final = 2
_CENTRE_VARIANCE: Final = 0.1
_SIZE_VARIANCE: Final = 0.2
_MAX_LOG: Final = 10.0


def create_retinaface_detector(
    network: Network, long_side: int, light_long_side: int, min_score: float
) -> Detector:
    """Return the detector for the shape that `network` has.

    Raises:
        ModelError: its outputs are not those of this family.
    """
    kind = PriorDetector if len(network.output_names) == _PRIOR_OUTPUTS else ScrfdDetector
    return kind(network, long_side, light_long_side, min_score)


class PriorDetector:
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
            bgr=True,
        )

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """See `Detector.detect`."""
        kept = self._shelf.get(frame, light=light)
        outputs = self._network.run({self._network.input_names[0]: kept.fill(frame)})
        height, width = kept.blob.shape[2:]
        decoded = decode_priors(outputs, (width, height), self._min_score)
        return select_detections(decoded, kept.get_scale(frame))


def decode_priors(outputs: Sequence[Array], size: tuple[int, int], min_score: float) -> Decoded:
    """Return the priors whose face class is above `min_score`, in px of an input `size`.

    `outputs`, in any order, end in 4 (offsets), 2 (classes, the second is the face) and 10.

    Raises:
        ModelError: they are not those of this family, or a number is not finite.
    """
    by_width = {output.shape[-1]: output.reshape(-1, output.shape[-1]) for output in outputs}
    counts = [ceil(size[0] / s) * ceil(size[1] / s) * _ANCHORS for s in _PRIORS]
    if set(by_width) != {2, 4, 10} or {len(one) for one in by_width.values()} != {sum(counts)}:
        shapes = ", ".join(str(output.shape) for output in outputs)
        raise explain_outputs("the detector", f"outputs of shapes {shapes}")
    scores = by_width[2][:, 1]
    check_finite(scores)
    chosen = np.flatnonzero(scores > min_score)
    offsets, points = by_width[4][chosen], by_width[10][chosen].reshape(-1, 5, 2)
    check_finite(offsets, points)
    centres, sides = _locate_priors(chosen, counts, size[0])
    middle = centres + offsets[:, :2] * _CENTRE_VARIANCE * sides
    half = 0.5 * sides * np.exp(np.minimum(offsets[:, 2:] * _SIZE_VARIANCE, _MAX_LOG))
    boxes = np.concatenate([middle - half, middle + half], axis=1).astype(np.float32)
    marks = centres[:, None] + points * _CENTRE_VARIANCE * sides[:, None]
    return Decoded(boxes, scores[chosen], marks.astype(np.float32))


def _locate_priors(
    chosen: NDArray[np.intp], counts: list[int], width: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the centres (n, 2) and sides (n, 1) of the priors numbered `chosen`, px."""
    starts = np.cumsum([0, *counts])
    strides = np.array(list(_PRIORS))
    level = np.searchsorted(starts, chosen, side="right") - 1
    cell, anchor = np.divmod(chosen - starts[level], _ANCHORS)
    stride = strides[level]
    rows, columns = np.divmod(cell, -(-width // stride))  # rounded up
    centres = (np.stack([columns, rows], axis=1) + 0.5) * stride[:, None]
    sides = np.array(list(_PRIORS.values()))[level, anchor]
    return centres.astype(np.float32), sides[:, None].astype(np.float32)
