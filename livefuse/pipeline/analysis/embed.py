"""Identity networks: a face's picture to a vector that is its person's, whatever light or look.

A family says how its network is fed and from which cosine on two vectors are one person; the rest
(size, template, mean, deviation) is the manifest's row. Vectors are L2-normalised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.errors import ConfigError, ModelError
from livefuse.pipeline.crop import CropReader
from livefuse.pipeline.scaling import scales_by_itself
from livefuse.pipeline.templates import fit_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.config import Config
    from livefuse.frame import Frame
    from livefuse.runtime.session import Network, SessionCache

_BYTE: Final = 255.0
_SHARP: Final = 0.1


class IdentityFamily(NamedTuple):
    """What is true of all networks of a family.

    `same`: cosine from which two faces are one person. `keep`: above it a face keeps its name.
    `scale` is what a pixel's 255 is for the network before mean and deviation; `template` is used
    when the manifest's row names none.
    """

    same: float
    keep: float
    scale: float
    template: str


FAMILIES: Final[dict[str, IdentityFamily]] = {
    # Trained to L2 < 0.6 on vectors of norm 1.44; 0.56 is a cosine of 0.924.
    "dlib_resnet": IdentityFamily(0.924, 0.9, _BYTE, "dlib_150"),
    "arcface": IdentityFamily(0.4, 0.28, 1.0, "arcface_112_v2"),
}


class Embedder:
    """Runs an identity network on aligned crops. One instance for one thread.

    `length` is that of its vectors, 0 before the first run. `sharpness` is 0..1 for each face of
    the last call: a smeared face says little about whose it is.
    """

    def __init__(self, network: Network, *, is_raw: bool = False) -> None:
        """Take a network of one of `FAMILIES`; `is_raw`: its graph scales px itself.

        Raises:
            ConfigError: it tells nobody apart.
        """
        model = network.model
        family = FAMILIES.get(model.family)
        if family is None:
            raise ConfigError(
                f"the model {model.name} does not tell people apart",
                hint=f"set identify.model to one of the families {', '.join(FAMILIES)}",
            )
        self._network = network
        self._size = network.input_shapes[0][2] if network.input_shapes[0][2] > 0 else model.size
        self._template = model.template or family.template
        self._reader = CropReader(_round_up(self._size))
        self._can_batch = network.input_shapes[0][0] < 0
        mean, std = np.array(model.mean, np.float32), np.array(model.std, np.float32)
        scale = family.scale
        if is_raw:
            mean, std, scale = np.zeros(3, np.float32), np.ones(3, np.float32), _BYTE
        self._factor = (np.float32(scale / _BYTE) / std).reshape(3, 1, 1)
        self._offset = (-mean / std).reshape(3, 1, 1)
        self._blob = np.empty((1, 3, self._size, self._size), np.float32)
        self.length = 0
        self.sharpness: list[float] = []
        self.same = family.same
        self.keep = family.keep

    def embed(self, frame: Frame, landmarks5: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return float32 (n, d), one L2-normalised vector for each (5, 2) px of `frame`.

        All faces in one run where the network takes any batch, equal to one by one.

        Raises:
            ModelError: the network failed, or its numbers are of no use.
        """
        count = len(landmarks5)
        if self._blob.shape[0] < count:
            self._blob = np.empty((count, *self._blob.shape[1:]), np.float32)
        self.sharpness = []
        for blob, points in zip(self._blob, landmarks5, strict=False):
            self._fill(blob, frame, points)
        step = count if self._can_batch else 1
        rows = [self._run(self._blob[i : i + step]) for i in range(0, count, max(step, 1))]
        return np.concatenate(rows) if rows else np.empty((0, 0), np.float32)

    def _fill(self, blob: NDArray[np.float32], frame: Frame, points: NDArray[np.float32]) -> None:
        """Put one face's crop into (3, size, size)."""
        transform = fit_template(points, self._template, self._size)
        rgb = self._reader.read(frame, transform)[: self._size, : self._size]
        self.sharpness.append(measure_sharpness(rgb[:, :, 1]))
        np.multiply(rgb.transpose(2, 0, 1), self._factor, out=blob)
        blob += self._offset

    def _run(self, blob: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = self._network.run({self._network.input_names[0]: blob})[0]
        rows = np.asarray(rows, np.float32).reshape(len(blob), -1)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.min() > 0.0:
            raise ModelError(
                f"the vectors of {self._network.model.name} are of no use",
                hint="run  livefuse doctor",
            )
        self.length = rows.shape[1]
        return np.asarray(rows / norms, np.float32)


def create_embedder(config: Config, sessions: SessionCache) -> Embedder:
    """Return the configured identity network, loaded.

    Raises:
        ModelError: it cannot be had.
        ConfigError: it tells nobody apart.
    """
    name = config.identify.model
    network = sessions.get(name, config.identify.threads)
    is_raw = network.model.family == "arcface" and scales_by_itself(name, config)
    return Embedder(network, is_raw=is_raw)


def measure_sharpness(plane: NDArray[np.uint8]) -> float:
    """Return how much fine detail a crop shows beside its contrast, 0..1: 1 is in focus."""
    detail = cv2.Laplacian(plane, cv2.CV_16S)
    contrast = float(cv2.meanStdDev(plane)[1][0, 0])
    return min(
        float(cv2.norm(detail, cv2.NORM_L1)) / detail.size / (_SHARP * (contrast + 4.0)), 1.0
    )


def _round_up(size: int) -> int:
    """Return the side of a crop that holds `size`: crops' sides are multiples of 4."""
    return (size + 3) // 4 * 4
