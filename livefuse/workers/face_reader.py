"""Faces of still pictures, by the pipeline's own analysis: is there just one, and whose is it?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from livefuse.errors import ConfigError
from livefuse.pipeline.analysis.embed import FAMILIES
from livefuse.pipeline.analysis.portrait import embed_looks, embed_picture, find_single_face
from livefuse.runtime.registry import load_registry
from livefuse.safety.embeddings import FaceEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livefuse.config import Config
    from livefuse.runtime.session import SessionCache


class FaceReader:
    """Looks at pictures (RGB uint8, height x width x 3). Safe from any thread, one at a time."""

    def __init__(self, config: Config, sessions: SessionCache) -> None:
        """Take what networks are made from; none is loaded yet."""
        self._config = config
        self._sessions = sessions
        self._lock = threading.Lock()
        self.embedder = FaceEmbedder(
            config.identify.model, self.embed, self.embed_looks, self.get_same
        )

    def check(self, picture_rgb: NDArray[np.uint8]) -> None:
        """Refuse a picture that does not show exactly one face that can be made out (C68).

        Raises:
            RefusedError: none, several, too small, or too much turned away.
            ModelError: a network cannot be had or failed.
        """
        with self._lock:
            find_single_face(picture_rgb, self._sessions, self._config)

    def embed(self, picture_rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the embedding (d,), L2-normalised, of the one face in the picture.

        Raises:
            RefusedError: there is not exactly one face.
            ModelError: a network cannot be had or failed.
        """
        with self._lock:
            return embed_picture(picture_rgb, self._sessions, self._config)

    def embed_looks(self, picture_rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return six looks at the one face in the picture, (6, d): the first is `embed`'s.

        Raises:
            RefusedError: there is not exactly one face.
            ModelError: a network cannot be had or failed.
        """
        with self._lock:
            return embed_looks(picture_rgb, self._sessions, self._config)

    def get_same(self) -> float:
        """Return the cosine from which the identity network takes two faces for one person.

        Raises:
            ModelError: there is no such network.
            ConfigError: it tells nobody apart.
        """
        model = load_registry(self._config.models).get_model(self._config.identify.model)
        family = FAMILIES.get(model.family)
        if family is None:
            raise ConfigError(
                f"the model {model.name} does not tell people apart",
                hint=f"set identify.model to one of the families {', '.join(FAMILIES)}",
            )
        return family.same
