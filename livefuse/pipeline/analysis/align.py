"""Landmarks: a mesh of each face, calm when the face rests and quick when it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.frame import create_frame
from livefuse.pipeline.analysis.facemesh import (
    FaceMesh,
    MeshCrop,
    create_crop_by_box,
    create_crop_by_mesh,
)
from livefuse.pipeline.analysis.smooth import OneEuroFilter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import AlignConfig
    from livefuse.face import Face
    from livefuse.frame import Frame
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

_MIN_SCORE: Final = 0.5


class _Aligned:
    """What is kept of one track."""

    def __init__(self, config: AlignConfig) -> None:
        self.crop: MeshCrop | None = None
        self.filter = OneEuroFilter(config.smooth_min_cutoff_hz, config.smooth_beta)


class AlignStep:
    """A mesh for each face. See `state.Step`."""

    def __init__(self, mesh: FaceMesh, config: AlignConfig) -> None:
        self._mesh = mesh
        self._config = config
        self._kept: dict[int, _Aligned] = {}

    def prepare(self, token: Token) -> None:  # noqa: ARG002 - the network is the same for all
        """See `Step.prepare`: the network runs once."""
        self._mesh.find(create_frame(64, 64), MeshCrop(32.0, 32.0, 64.0, 0.0))

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.is_cut:
            self._kept.clear()
        ids = {face.track.track_id for face in state.faces}
        self._kept = {key: kept for key, kept in self._kept.items() if key in ids}
        for face in state.faces:
            face.mesh = self._align(state.frame, face, state.dt_s)
        state.did = f"aligned {sum(face.mesh is not None for face in state.faces)}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._kept.clear()

    def _align(self, frame: Frame, face: Face, dt_s: float) -> NDArray[np.float32] | None:
        track = face.track
        kept = self._kept.setdefault(track.track_id, _Aligned(self._config))
        crop = kept.crop or create_crop_by_box(track.box, track.roll_rad)
        mesh, score = self._mesh.find(frame, crop)
        if score < _MIN_SCORE:
            self._kept.pop(track.track_id)
            return None
        kept.crop = create_crop_by_mesh(mesh)
        width = float(np.linalg.norm(mesh[454] - mesh[234]))
        smooth = kept.filter.smooth(mesh.reshape(-1).astype(np.float64), dt_s, max(width, 1.0))
        return smooth.reshape(mesh.shape).astype(np.float32)


def create_align_step(context: StepContext) -> AlignStep:
    """Return the step; its network is loaded.

    Raises:
        ModelError: the network cannot be had.
    """
    config = context.config.align
    network = context.sessions.get(config.model, config.threads)
    return AlignStep(FaceMesh(network), config)
