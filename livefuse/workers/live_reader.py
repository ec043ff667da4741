"""What a live match asks of a frame: whose face, how it is turned, what its mouth does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.clock import SystemClock
from livefuse.errors import ModelError
from livefuse.frame import TIME_BASE_HZ
from livefuse.pipeline.analysis.attributes import describe_attributes
from livefuse.pipeline.analysis.embed import create_embedder
from livefuse.pipeline.analysis.pose import measure_width
from livefuse.pipeline.landmarks import convert_mesh_to_5
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.safety.cover import cover_frame
from livefuse.safety.live import Head, Seen
from livefuse.token import create_token

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.face import SourceFace
    from livefuse.frame import Frame
    from livefuse.runtime.session import SessionCache

_OPERATIONS = ("detect", "align")


class LiveReader:
    """Looks at frames in their order. One thread."""

    def __init__(self, config: Config, sessions: SessionCache) -> None:
        """Load what it takes.

        Raises:
            ModelError: a network cannot be had.
            ConfigError: the identity network tells nobody apart.
        """
        services = Services(cover_frame, _load_nobody, tuple, bool)
        self._pipeline = Pipeline(config, sessions, SystemClock(), services, every_frame=True)
        self._token = create_token(_OPERATIONS, now_epoch_s=0.0)
        self._pipeline.prepare(self._token)
        self._embedder = create_embedder(config, sessions)
        self.same, self.keep = self._embedder.same, self._embedder.keep

    def read(self, frame: Frame) -> Seen:
        """Return what the frame shows; its time is its PTS. 0.2 s.

        Raises:
            ModelError: a network failed.
        """
        state = self._pipeline.begin(frame, self._token)
        for name in _OPERATIONS:
            self._pipeline.run_step(state, name)
        if state.error:
            raise ModelError(
                f"the frame cannot be looked at ({state.error})", hint="livefuse doctor"
            )
        time_s = frame.pts / TIME_BASE_HZ
        faces = [face for face in state.faces if not face.track.missed]
        if len(faces) != 1 or faces[0].mesh is None:
            return Seen(time_s, len(faces) if len(faces) != 1 else 0)
        face, mesh = faces[0], faces[0].mesh
        attributes = describe_attributes(frame, face)
        if attributes is None:
            return Seen(time_s, 0)
        head = Head(
            points=mesh[:468].copy(),
            width_px=measure_width(mesh),
            yaw_rad=face.pose_rad[0],
            pitch_rad=face.pose_rad[1],
            mouth_open=attributes.mouth_open,
            smile=attributes.smile,
            embedding=self._embedder.embed(frame, [convert_mesh_to_5(mesh)])[0],
        )
        return Seen(time_s, 1, head)

    def close(self) -> None:
        """End the side work."""
        self._pipeline.close()


def _load_nobody(face_id: str) -> SourceFace:
    raise KeyError(face_id)  # no operation of this pipeline shows anybody
