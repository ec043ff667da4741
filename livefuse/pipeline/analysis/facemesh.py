"""The face mesh: MediaPipe's 468 points, refined at eyes and lips and with irises (478)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.errors import ModelError
from livefuse.geometry import Similarity, invert_similarity
from livefuse.pipeline.crop import CropReader
from livefuse.pipeline.topology import REFINE_EYE_LEFT, REFINE_EYE_RIGHT, REFINE_LIPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.face import Box
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network

SIDE: Final = 192
_MARGIN: Final = 1.5
_POINTS: Final = 468
_IRIS_POINTS: Final = 5
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
    x, y = mesh[:_POINTS, 0], mesh[:_POINTS, 1]
    eyes_x, eyes_y = (mesh[263, :2] - mesh[33, :2]).tolist()
    roll = math.atan2(eyes_y, eyes_x)
    cosine, sine = np.float32(math.cos(roll)), np.float32(math.sin(roll))
    across, down = cosine * x + sine * y, cosine * y - sine * x
    left, right, top, bottom = (float(v) for v in _find_bounds(across, down))
    across_mid, down_mid = (left + right) / 2, (top + bottom) / 2
    return MeshCrop(
        float(cosine) * across_mid - float(sine) * down_mid,
        float(sine) * across_mid + float(cosine) * down_mid,
        _MARGIN * max(right - left, bottom - top),
        roll,
    )


def _find_bounds(
    x: NDArray[np.float32], y: NDArray[np.float32]
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    return x.min(), x.max(), y.min(), y.max()


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
        self._layout: _Layout | None = None
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
        outputs = self._network.run({self._input: self._blob})
        mesh, score = self._read(outputs)
        back = invert_similarity(to_crop)
        placed = np.empty_like(mesh)
        placed[:, 0] = back.a * mesh[:, 0] - back.b * mesh[:, 1] + back.tx
        placed[:, 1] = back.b * mesh[:, 0] + back.a * mesh[:, 1] + back.ty
        placed[:, 2] = mesh[:, 2] * back.scale
        return placed, score

    def _read(self, outputs: Sequence[NDArray[np.float32]]) -> tuple[NDArray[np.float32], float]:
        """Return points in px of the input, and the score."""
        layout = self._layout
        if layout is None:
            layout = self._layout = _find_layout(self._network.output_names, outputs)
        flat = np.concatenate([outputs[place].reshape(-1) for place in layout.points])
        points = flat[layout.gather]
        logit = float(outputs[layout.score].reshape(-1)[0])
        return points, 1.0 / (1.0 + math.exp(-min(max(logit, -50.0), 50.0)))


class _Layout(NamedTuple):
    """Which output is the score, which hold points, and where in these each number of a mesh is."""

    score: int
    points: tuple[int, ...]
    gather: NDArray[np.intp]


# The attention network's parts, by what their names hold; irises lie as deep as an eye's corner.
_REFINED: Final = (
    ("left_eye", REFINE_EYE_LEFT),
    ("right_eye", REFINE_EYE_RIGHT),
    ("lips", REFINE_LIPS),
)
_IRISES: Final = (("left_iris", 33), ("right_iris", 263))


def _find_layout(names: Sequence[str], outputs: Sequence[NDArray[np.float32]]) -> _Layout:
    """Return the layout of either network, by names and sizes.

    Raises:
        ModelError: it is another network.
    """
    sizes = [output.size for output in outputs]
    if 1 not in sizes or 3 * _POINTS not in sizes:
        raise ModelError("this is not a face mesh network", hint="set align.model to a facemesh")
    places = {key: i for key, _ in (*_REFINED, *_IRISES) for i, n in enumerate(names) if key in n}
    points = [sizes.index(3 * _POINTS)]
    gather = np.arange(3 * _POINTS, dtype=np.intp).reshape(_POINTS, 3)
    count = 3 * _POINTS
    for key, indices in _REFINED:
        if key in places:
            points.append(places[key])
            gather[indices, :2] = np.arange(count, count + 2 * len(indices)).reshape(-1, 2)
            count += 2 * len(indices)
    for key, corner in _IRISES:
        if key in places:
            points.append(places[key])
            iris = np.full((_IRIS_POINTS, 3), gather[corner, 2], np.intp)
            iris[:, :2] = np.arange(count, count + 2 * _IRIS_POINTS).reshape(-1, 2)
            gather = np.concatenate([gather, iris])
            count += 2 * _IRIS_POINTS
    return _Layout(sizes.index(1), tuple(points), gather)
