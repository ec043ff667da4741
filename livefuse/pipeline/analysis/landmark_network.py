"""Landmark networks that people bring: more points beside the mesh, by config `align.extra`.

A family says which square of the frame its networks see, how that is scaled, and how points are
read from what they say. Crops are read level, whatever the head's roll.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.errors import ConfigError, ModelError
from livefuse.geometry import Similarity, apply_similarity, invert_similarity
from livefuse.pipeline.crop import CropReader
from livefuse.pipeline.landmarks import convert_mesh_to_106, get_landmarks5
from livefuse.pipeline.scaling import scales_by_itself
from livefuse.pipeline.templates import fit_template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from livefuse.config import Config
    from livefuse.face import Face
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network, SessionCache

    Floats = NDArray[np.float32]

_POINT_TEMPLATE: Final = "ffhq_512"


class Square(NamedTuple):
    """What of the frame a network sees: centre and side in px, the turn that levels the eyes."""

    x: float
    y: float
    side: float
    roll_rad: float

    def to_crop(self, size: int) -> Similarity:
        """Return the transform to px of a crop of `size`: its middle is size / 2, as trained."""
        scale = size / self.side
        a, b = scale * math.cos(-self.roll_rad), scale * math.sin(-self.roll_rad)
        middle = size / 2
        return Similarity(a, b, middle - a * self.x + b * self.y, middle - b * self.x - a * self.y)


class LandmarkFamily(NamedTuple):
    """What is true of all networks of a family.

    `place` finds the square, `read` turns outputs into (rows, points, 2) in fractions of it. Fed is
    (x - mean) / std of RGB 0..255. None for `place`: the network is fed five points.
    """

    place: Callable[[Face], Square] | None
    read: Callable[[Sequence[Floats]], Floats]
    mean: float = 0.0
    std: float = 255.0


def _place_by_box(face: Face, share: float) -> Square:
    """Return the square round the track's box, its longer side `share` of the square's."""
    box = face.track.box
    side = max(box.width, box.height, 1.0) / share
    return Square((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, side, face.track.roll_rad)


def _place_by_points(face: Face) -> Square:
    """Return the square of LivePortrait: 1.5 times the points' extent, a tenth of it higher.

    Level means here that the line from the mouth to the eyes stands upright.
    """
    five = get_landmarks5(face)
    points = five if face.mesh is None else convert_mesh_to_106(face.mesh)
    down = (five[3] + five[4] - five[0] - five[1]) / 2
    roll = math.atan2(-float(down[0]), float(down[1]))
    cosine, sine = math.cos(roll), math.sin(roll)
    turned = points @ np.array([[cosine, -sine], [sine, cosine]], np.float32)
    low, high = turned.min(axis=0), turned.max(axis=0)
    side = 1.5 * max(float((high - low).max()), 1.0)
    x, y = ((low + high) / 2).tolist()
    y -= 0.1 * side
    return Square(cosine * x - sine * y, sine * x + cosine * y, side, roll)


def _read_fan(outputs: Sequence[Floats]) -> Floats:
    """Points of a heat map of 64 px."""
    return outputs[0].reshape(len(outputs[0]), -1, 3)[:, :, :2] / np.float32(64.0)


def _read_insightface(outputs: Sequence[Floats]) -> Floats:
    """Points in -1..1, (x, y) or (x, y, z); of 1103 three-dimensional ones the last 68."""
    flat = outputs[0].reshape(len(outputs[0]), -1)
    points = flat.reshape(len(flat), -1, 3)[:, -68:, :2] if flat.shape[1] >= 3000 else flat  # noqa: PLR2004 - insightface's own bound
    return (points.reshape(len(flat), -1, 2) + np.float32(1.0)) / np.float32(2.0)


def _read_third(outputs: Sequence[Floats]) -> Floats:
    """Points in 0..1, the third output."""
    return outputs[2].reshape(len(outputs[2]), -1, 2)


def _read_plain(outputs: Sequence[Floats]) -> Floats:
    return outputs[0].reshape(len(outputs[0]), -1, 2)


def _place_fan(face: Face) -> Square:
    return _place_by_box(face, 195.0 / 256.0)


def _place_insightface(face: Face) -> Square:
    return _place_by_box(face, 1.0 / 1.5)


FAMILIES: Final[dict[str, LandmarkFamily]] = {
    "fan": LandmarkFamily(_place_fan, _read_fan),
    "peppa_wutz": LandmarkFamily(_place_fan, _read_fan),
    "fan_68_5": LandmarkFamily(None, _read_plain),
    "insightface_landmarks": LandmarkFamily(_place_insightface, _read_insightface, 127.5, 128.0),
    "liveportrait_landmarks": LandmarkFamily(_place_by_points, _read_third),
}


class LandmarkNetwork:
    """Finds the points of one network. One instance for one thread."""

    def __init__(self, network: Network, *, is_raw: bool = False) -> None:
        """Take a network of one of `FAMILIES`; `is_raw`: its graph scales px itself.

        Raises:
            ConfigError: it finds no points beside a mesh.
        """
        model = network.model
        family = FAMILIES.get(model.family)
        if family is None:
            raise ConfigError(
                f"the model {model.name} finds no landmarks beside the mesh",
                hint=f"set align.extra to models of the families {', '.join(FAMILIES)}",
            )
        self._network = network
        self._family = family
        self._can_batch = network.input_shapes[0][0] < 0
        self._mean, self._std = (0.0, 1.0) if is_raw else (family.mean, family.std)
        side = network.input_shapes[0][-1]
        self._size = side if side > 0 else model.size
        self._reader = CropReader((self._size + 3) // 4 * 4) if family.place else None
        self._blob = np.empty((1, 3, self._size, self._size), np.float32)

    def find(self, frame: Frame, faces: Sequence[Face]) -> list[Floats]:
        """Return float32 (points, 2) px of `frame` for each of `faces`.

        All faces in one run where the network takes any batch, equal to one by one.

        Raises:
            ModelError: the network failed or its numbers are of no use.
        """
        if not faces:
            return []
        if self._family.place is None:
            return self._convert(faces)
        transforms = [self._family.place(face).to_crop(self._size) for face in faces]
        if len(self._blob) < len(faces):
            self._blob = np.empty((len(faces), *self._blob.shape[1:]), np.float32)
        for blob, transform in zip(self._blob, transforms, strict=False):
            self._fill(blob, frame, transform)
        points = self._run(self._blob[: len(faces)]) * np.float32(self._size)
        return _take_back(points, transforms)

    def _convert(self, faces: Sequence[Face]) -> list[Floats]:
        """Feed five points in their template's unit crop, read the others there."""
        known = [get_landmarks5(face) for face in faces]
        transforms = [fit_template(points, _POINT_TEMPLATE, 1) for points in known]
        fed = [apply_similarity(t, points) for t, points in zip(transforms, known, strict=True)]
        return _take_back(self._run(np.stack(fed)), transforms)

    def _fill(self, blob: Floats, frame: Frame, transform: Similarity) -> None:
        assert self._reader is not None  # noqa: S101 - the family has a place
        rgb = self._reader.read(frame, transform)[: self._size, : self._size]
        np.multiply(rgb.transpose(2, 0, 1), np.float32(1.0 / self._std), out=blob)
        if self._mean:
            blob -= np.float32(self._mean / self._std)

    def _run(self, rows: Floats) -> Floats:
        """Return (rows, points, 2) as the family reads them."""
        name = self._network.input_names[0]
        step = len(rows) if self._can_batch else 1
        runs = [self._network.run({name: rows[i : i + step]}) for i in range(0, len(rows), step)]
        points = np.concatenate([self._family.read(outputs) for outputs in runs])
        if len(points) != len(rows) or not np.isfinite(points).all():
            raise ModelError(
                f"the landmarks of {self._network.model.name} are of no use",
                hint="run  livefuse doctor",
            )
        return points


def _take_back(points: Floats, transforms: Sequence[Similarity]) -> list[Floats]:
    return [
        apply_similarity(invert_similarity(transform), row)
        for transform, row in zip(transforms, points, strict=True)
    ]


def create_landmark_network(name: str, config: Config, sessions: SessionCache) -> LandmarkNetwork:
    """Return the network `name`, loaded.

    Raises:
        ModelError: it cannot be had.
        ConfigError: it finds no points beside a mesh.
    """
    network = sessions.get(name, config.align.threads)
    may_scale = network.model.family == "insightface_landmarks"
    return LandmarkNetwork(network, is_raw=may_scale and scales_by_itself(name, config))
