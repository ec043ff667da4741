"""SCRFD: at each stride's cells, distances to the four sides of a face and to its five points.

Guo et al. 2021, "Sample and Computation Redistribution for Efficient Face Detection",
arXiv:2105.04714. Distances are in cells; the anchor is the cell's top left corner. Three strides
with two anchors a cell, or five with one; with or without points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.errors import ModelError
from livefuse.pipeline.analysis.detect import (
    Decoded,
    check_finite,
    guess_landmarks5,
    join_decoded,
    select_detections,
)
from livefuse.pipeline.analysis.planar import InputShelf, create_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.face import Detection
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

    Array = NDArray[np.float32]

# By the number of strides that score: (strides, anchors a cell).
_LAYOUTS: Final = {3: ((8, 16, 32), 2), 5: ((8, 16, 32, 64, 128), 1)}
_ROW_WITHOUT_POINTS: Final = 8  # stride, score, cell x and y, four sides
_MULTIPLES: Final = {6: 32, 9: 32, 10: 128, 15: 128}


class Level(NamedTuple):
    """What one stride says: scores (n,), boxes (n, 4), points (n, 10) or None."""

    stride: int
    anchors: int
    scores: Array
    boxes: Array
    points: Array | None


class ScrfdDetector:
    """A `Detector`. Keeps its inputs, so one instance serves one thread."""

    def __init__(
        self, network: Network, long_side: int, light_long_side: int, min_score: float
    ) -> None:
        """Use inputs of `long_side` px, or of `light_long_side`; report from `min_score` up.

        Raises:
            ModelError: its outputs are not those of this family.
        """
        count = len(network.output_names)
        if count not in _MULTIPLES:
            raise explain_outputs(network.model.name, f"{count} outputs")
        self._network = network
        self._min_score = min_score
        self._shelf = InputShelf(
            network,
            (long_side, light_long_side),
            _MULTIPLES[count],
            create_tables(network.model.mean, network.model.std),
        )

    def detect(self, frame: Frame, *, light: bool = False) -> list[Detection]:
        """See `Detector.detect`."""
        kept = self._shelf.get(frame, light=light)
        outputs = self._network.run({self._network.input_names[0]: kept.fill(frame)})
        height, width = kept.blob.shape[2:]
        levels = arrange_levels(outputs, (width, height))
        return select_detections(
            decode_scrfd(levels, width, self._min_score), kept.get_scale(frame)
        )


def arrange_levels(outputs: Sequence[Array], size: tuple[int, int]) -> list[Level]:
    """Return what each stride of a network with input `size` (width, height) px says.

    Outputs are told by their last side (1, 4 or 10) and, of one kind, by their length: exports
    name and order them differently.

    Raises:
        ModelError: they are not those of this family.
    """
    kinds: dict[int, list[Array]] = {1: [], 4: [], 10: []}
    for output in outputs:
        flat = output.reshape(-1, output.shape[-1])
        if flat.shape[1] not in kinds:
            raise explain_outputs("the detector", f"an output of shape {output.shape}")
        kinds[flat.shape[1]].append(flat)
    scores, boxes, points = (sorted(kinds[n], key=len, reverse=True) for n in (1, 4, 10))
    if len(scores) not in _LAYOUTS or len(boxes) != len(scores):
        raise explain_outputs("the detector", f"{len(scores)} scores and {len(boxes)} boxes")
    strides, anchors = _LAYOUTS[len(scores)]
    levels = []
    for index, stride in enumerate(strides):
        expected = (size[0] // stride) * (size[1] // stride) * anchors
        if len(scores[index]) != expected or len(boxes[index]) != expected:
            raise explain_outputs("the detector", f"{len(scores[index])} scores for {expected}")
        marks = points[index] if points else None
        levels.append(Level(stride, anchors, scores[index].reshape(-1), boxes[index], marks))
    return levels


def decode_scrfd(levels: Sequence[Level], width: int, min_score: float) -> Decoded:
    """Return the anchors above `min_score` in px of an input `width` px wide.

    Only those are decoded: a dozen of some ten thousand.

    Raises:
        ModelError: a number is not finite.
    """
    found = [_pick(level, width, min_score) for level in levels]
    found = [rows for rows in found if len(rows)]
    if not found:
        return join_decoded([])
    rows = np.concatenate(found) if len(found) > 1 else found[0]
    check_finite(rows)
    stride, scores, corners = rows[:, :1], rows[:, 1], rows[:, 2:4]
    boxes = np.concatenate([corners - rows[:, 4:6], corners + rows[:, 6:8]], axis=1) * stride
    if rows.shape[1] == _ROW_WITHOUT_POINTS:
        return Decoded(boxes, scores, guess_landmarks5(boxes))
    marks = (rows[:, _ROW_WITHOUT_POINTS:].reshape(-1, 5, 2) + corners[:, None]) * stride[:, None]
    return Decoded(boxes, scores, marks)


def _pick(level: Level, width: int, min_score: float) -> Array:
    """Return a row for each anchor above `min_score`: stride, score, cell, sides, points."""
    check_finite(level.scores)
    chosen = np.flatnonzero(level.scores > min_score)
    if not len(chosen):
        return level.boxes[:0]
    points = 0 if level.points is None else level.points.shape[1]
    rows = np.empty((len(chosen), _ROW_WITHOUT_POINTS + points), np.float32)
    rows[:, 0] = level.stride
    rows[:, 1] = level.scores[chosen]
    rows[:, 3], rows[:, 2] = np.divmod(chosen // level.anchors, width // level.stride)
    rows[:, 4:8] = level.boxes[chosen]
    if level.points is not None:
        rows[:, 8:] = level.points[chosen]
    return rows


def explain_outputs(name: str, what: str) -> ModelError:
    """Return the error for a network that is not what its row says."""
    return ModelError(
        f"{name} has {what}: not those of its family",
        hint="import the file again with  livefuse models import FILE",
    )
