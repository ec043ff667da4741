"""What a swapper network is told of the source: an identity vector, or an aligned picture.

Off the frame's thread: an identity network takes 0.15 s on a processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import ModelError
from livefuse.geometry import Similarity, create_matrix
from livefuse.pipeline.scaling import scales_by_itself
from livefuse.pipeline.templates import fit_template
from livefuse.runtime.graph import read_last_initialiser
from livefuse.runtime.registry import load_registry

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from livefuse.config import Config
    from livefuse.runtime.registry import Model
    from livefuse.runtime.session import Network, SessionCache

    Floats = NDArray[np.float32]

_MAX_SHRINK: Final = 2.0
_IDENTITY_TEMPLATE: Final = "arcface_112_v2"


@dataclass(slots=True, frozen=True, eq=False)
class SourcePicture:
    """The source's picture, uint8 RGB (height, width, 3), and its (5, 2) points, px."""

    rgb: NDArray[np.uint8]
    landmarks5: Floats

    def crop(self, template: str, size: int) -> NDArray[np.uint8]:
        """Return RGB (size, size, 3), aligned to `template`."""
        to_crop = fit_template(self.landmarks5, template, size)
        picture = self.rgb
        while to_crop.scale * _MAX_SHRINK < 1.0:
            height, width = picture.shape[0] // 2, picture.shape[1] // 2
            picture = np.asarray(
                cv2.resize(
                    picture[: 2 * height, : 2 * width],
                    (width, height),
                    interpolation=cv2.INTER_AREA,
                ),
                np.uint8,
            )
            a, b, tx, ty = to_crop
            # x = 2 x_half + 0.5
            to_crop = Similarity(2 * a, 2 * b, tx + 0.5 * (a - b), ty + 0.5 * (a + b))
        cropped = cv2.warpAffine(
            picture, create_matrix(to_crop), (size, size), borderMode=cv2.BORDER_CONSTANT
        )
        return np.asarray(cropped, np.uint8)


class SourceReader:
    """Makes the numbers of a source for one swapper model. Any thread."""

    def __init__(self, model: Model, sessions: SessionCache, config: Config) -> None:
        """`model.needs` names the identity network and the converter, where there is one."""
        self._model = model
        self._sessions = sessions
        self._config = config

    def read_embedding(self, source: SourcePicture) -> Floats:
        """Return the identity (1, d) as the network says it, not normalised.

        Raises:
            ModelError: the identity network cannot be had or failed.
        """
        network = self._get_need("identify")
        model = network.model
        size = network.input_shapes[0][2] if network.input_shapes[0][2] > 0 else model.size
        rgb = source.crop(model.template or _IDENTITY_TEMPLATE, size).astype(np.float32)
        mean, std = np.array(model.mean, np.float32), np.array(model.std, np.float32)
        if not scales_by_itself(model.name, self._config):
            rgb = (rgb / np.float32(255) - mean) / std
        blob = np.ascontiguousarray(rgb.transpose(2, 0, 1)[None], np.float32)
        return network.run({network.input_names[0]: blob})[0].reshape(1, -1).astype(np.float32)

    def read_mapped(self, source: SourcePicture) -> Floats:
        """Return the normalised identity times the swapper's own map, normalised again.

        The map is the last initialiser of the swapper's graph (insightface's emap).

        Raises:
            ModelError: a network cannot be had or failed, or the file has no map.
        """
        embedding = normalise(self.read_embedding(source))
        emap = read_last_initialiser(self._find_path(self._model.name))
        if emap.shape != (embedding.shape[1],) * 2:
            raise ModelError(
                f"the last initialiser of {self._model.name} is {emap.shape}, not a square map",
                hint="take the file as it was published: it must not be optimised or re-saved",
            )
        return normalise(embedding @ emap)

    def read_converted(self, source: SourcePicture) -> Floats:
        """Return the identity through the converter that the model needs.

        Raises:
            ModelError: a network cannot be had or failed.
        """
        converter = self._get_need("convert")
        embedding = self.read_embedding(source)
        return converter.run({converter.input_names[0]: embedding})[0].reshape(1, -1)

    def _get_need(self, task: str) -> Network:
        registry = load_registry(self._config.models)
        for name in self._model.needs:
            if registry.get_model(name).task == task:
                return self._sessions.get(name, self._config.swap.threads)
        raise ModelError(
            f"the manifest does not say which {task} model {self._model.name} needs",
            hint="add it to `needs` of its row in models/manifest.toml",
        )

    def _find_path(self, name: str) -> Path:
        path = load_registry(self._config.models).find_path(name)
        if path is None:
            raise ModelError(f"there is no file of {name}", hint="run  livefuse models list")
        return path


def normalise(embedding: Floats) -> Floats:
    """Return (1, d) of length 1.

    Raises:
        ModelError: it has no length.
    """
    length = float(np.linalg.norm(embedding))
    if not 0.0 < length < np.inf:
        raise ModelError("the source's identity is of no use", hint="run  livefuse doctor")
    return (embedding / length).astype(np.float32)
