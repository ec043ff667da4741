"""The face mesh: MediaPipe's 468 points, refined at eyes and lips and with irises (478)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.errors import ModelError
from livefuse.geometry import Similarity, invert_similarity
from livefuse.pipeline.analysis.detect import check_finite
from livefuse.pipeline.crop import CropReader
from livefuse.pipeline.topology import REFINE_EYE_LEFT, REFINE_EYE_RIGHT, REFINE_LIPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.face import Box
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

SIDE: Final = 192
_MARGIN: Final = 1.5
_POINTS: Final = 468
# A crop stays where it is while the face has moved less: a crop that follows every px makes the
# network's answer tremble.
_KEEP_SHIFT: Final = 0.02  # of the crop's side
_KEEP_GROWTH: Final = 0.03
_KEEP_TURN_RAD: Final = math.radians(2.0)
_FOLLOW: Final = 0.7


class MeshCrop(NamedTuple):
    """The square that the network sees: centre and side in px of the frame, turn in radians."""

    x: float
    y: float
    side: float
    roll_rad: float

    def to_crop(self) -> Similarity:
        """Return the transform from px of the frame to px of the network's input."""
        scale = SIDE / self.side
        a, b = scale * math.cos(-self.roll_rad), scale * math.sin(-self.roll_rad)
        middle = (SIDE - 1) / 2
        return Similarity(a, b, middle - a * self.x + b * self.y, middle - b * self.x - a * self.y)


def create_crop_by_box(box: Box, roll_rad: float) -> MeshCrop:
    """Return the crop around a detector's box, eyes level."""
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return MeshCrop(x, y, _MARGIN * max(box.width, box.height), roll_rad)


def create_crop_by_mesh(mesh: NDArray[np.float32]) -> MeshCrop:
    """Return the crop around points that are known, eyes level."""
    xy = mesh[:_POINTS, :2]
    roll = math.atan2(*(mesh[263, :2] - mesh[33, :2])[::-1].tolist())
    cosine, sine = math.cos(roll), math.sin(roll)
    turned = xy @ np.array([[cosine, -sine], [sine, cosine]], np.float32)
    low, high = turned.min(axis=0), turned.max(axis=0)
    x, y = ((low + high) / 2).tolist()
    side = _MARGIN * float((high - low).max())
    return MeshCrop(cosine * x - sine * y, sine * x + cosine * y, side, roll)


def follow_crop(kept: MeshCrop, wanted: MeshCrop) -> MeshCrop:
    """Return `kept` while `wanted` is nearly the same, else go most of the way to it."""
    x, y = wanted.x - kept.x, wanted.y - kept.y
    turn = math.remainder(wanted.roll_rad - kept.roll_rad, math.tau)
    if (
        math.hypot(x, y) <= _KEEP_SHIFT * kept.side
        and abs(wanted.side / kept.side - 1.0) <= _KEEP_GROWTH
        and abs(turn) <= _KEEP_TURN_RAD
    ):
        return kept
    return MeshCrop(
        kept.x + _FOLLOW * x,
        kept.y + _FOLLOW * y,
        kept.side + _FOLLOW * (wanted.side - kept.side),
        kept.roll_rad + _FOLLOW * turn,
    )


class FaceMesh:
    """Runs the network on a crop. One instance for one thread."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._reader = CropReader(SIDE)
        self._blob = np.empty((1, SIDE, SIDE, 3), np.float32)
        self._input = network.input_names[0]

    def find(self, frame: Frame, crop: MeshCrop) -> tuple[NDArray[np.float32], float]:
        """Return the mesh, float32 (468 or 478, 3) in px of the frame, and its score 0..1.

        Raises:
            ModelError: the network failed or its numbers are not finite.
        """
        to_crop = crop.to_crop()
        rgb = self._reader.read(frame, to_crop)
        np.multiply(rgb[None], np.float32(1 / 255), out=self._blob)
        outputs = dict(
            zip(
                self._network.output_names,
                self._network.run({self._input: self._blob}),
                strict=True,
            )
        )
        mesh, score = _read_outputs(outputs)
        check_finite(mesh)
        back = invert_similarity(to_crop)
        placed = np.empty_like(mesh)
        placed[:, 0] = back.a * mesh[:, 0] - back.b * mesh[:, 1] + back.tx
        placed[:, 1] = back.b * mesh[:, 0] + back.a * mesh[:, 1] + back.ty
        placed[:, 2] = mesh[:, 2] * back.scale
        return placed, score


def _read_outputs(outputs: dict[str, NDArray[np.float32]]) -> tuple[NDArray[np.float32], float]:
    """Return points in px of the input and the score of either network, by size of output."""
    flat = {name: value.reshape(-1) for name, value in outputs.items()}
    score = next((float(v[0]) for v in flat.values() if v.size == 1), None)
    mesh = next((v for v in flat.values() if v.size == 3 * _POINTS), None)
    if score is None or mesh is None:
        raise ModelError("this is not a face mesh network", hint="set align.model to a facemesh")
    points = mesh.reshape(_POINTS, 3).copy()
    extra: list[NDArray[np.float32]] = []
    for key, indices in (
        ("left_eye", REFINE_EYE_LEFT),
        ("right_eye", REFINE_EYE_RIGHT),
        ("lips", REFINE_LIPS),
    ):
        part = next((v for name, v in flat.items() if key in name), None)
        if part is not None:
            points[indices, :2] = part.reshape(-1, 2)
    for key, corner in (("left_iris", 33), ("right_iris", 263)):
        part = next((v for name, v in flat.items() if key in name), None)
        if part is not None:
            xy = part.reshape(-1, 2)
            extra.append(np.column_stack([xy, np.full(len(xy), points[corner, 2], np.float32)]))
    sure = 1.0 / (1.0 + math.exp(-min(max(score, -50.0), 50.0)))
    return np.vstack([points, *extra]).astype(np.float32), sure
