"""The people who are known: names and their vectors, searched by one matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.face import KnownFace


class Gallery:
    """Immutable, so safe from any thread. A person may have several vectors.

    `people` are the names, each once; `skipped` counts vectors of another length than `size`:
    another network made them, so they say nothing here.
    """

    def __init__(self, known: Sequence[KnownFace], size: int) -> None:
        """Take the vectors of `size` numbers."""
        fitting = [face for face in known if face.embedding.shape == (size,)]
        self.skipped = len(known) - len(fitting)
        self.people = tuple(dict.fromkeys(face.person for face in fitting))
        self._owners = np.array([self.people.index(face.person) for face in fitting], np.intp)
        self.matrix: NDArray[np.float32] = np.zeros((len(fitting), size), np.float32)
        for row, face in zip(self.matrix, fitting, strict=True):
            row[:] = face.embedding / max(float(np.linalg.norm(face.embedding)), 1e-9)

    def compare(self, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of each of (m, d) normalised vectors to each person: (m, people).

        Of a person's several vectors the nearest counts.
        """
        best = np.full((len(embeddings), len(self.people)), -1.0, np.float32)
        cosines = embeddings @ self.matrix.T
        np.maximum.at(best.T, self._owners, cosines.T)
        return best
