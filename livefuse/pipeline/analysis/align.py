"""Landmarks: a mesh of each face, calm when the face rests and quick when it moves.

A face's mesh is sought where it was in the frame before, so a mesh may wander onto something else
with the track none the wiser. Both are compared in every frame: when they part, or the network
says that there is no face, the search begins anew from the track's box.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.errors import ConfigError, ModelError
from livefuse.face import Box, Face, Track
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.facemesh import (
    FaceMesh,
    MeshCrop,
    create_crop_by_box,
    create_crop_by_mesh,
    follow_crop,
)
from livefuse.pipeline.analysis.landmark_network import create_landmark_network
from livefuse.pipeline.analysis.pose import compute_pose, measure_width
from livefuse.pipeline.analysis.smooth import OneEuroFilter
from livefuse.pipeline.landmarks import convert_mesh_to_5
from livefuse.pipeline.templates import get_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from livefuse.config import AlignConfig
    from livefuse.frame import Frame
    from livefuse.pipeline.analysis.landmark_network import LandmarkNetwork
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

_BEGIN_SCORE: Final = 0.5
_KEEP_SCORE: Final = 0.3
_SPEED_CUTOFF_HZ: Final = 1.0
# Mesh and track may differ by this share of the face's width, and in size by this factor.
_MAX_APART: Final = 0.35
_MAX_APART_LOST: Final = 0.8
_MAX_RATIO: Final = 1.6
_LINGER_S: Final = 0.5  # longer than any effect takes to fade
_JUMP: Final = 0.05  # of the crop's side: a track that moved more takes the crop along


class _Found(NamedTuple):
    mesh: NDArray[np.float32]
    score: float
    crop: MeshCrop


class _Aligned:
    """What is kept of one track."""

    def __init__(self, config: AlignConfig) -> None:
        self._config = config
        self._filters: dict[int, OneEuroFilter] = {}
        self.crop: MeshCrop | None = None
        self.centre = (0.0, 0.0)
        self.mesh: NDArray[np.float32] | None = None
        self.turn = 0
        self.idle_s = 0.0

    def restart(self) -> None:
        """Forget where the face was."""
        self.crop = self.mesh = None
        self._filters.clear()

    def smooth(
        self, points: NDArray[np.float32], dt_s: float, width_px: float
    ) -> NDArray[np.float32]:
        """Return `points` (n, 2 or 3) smoothed, each set of n by a filter of its own."""
        kept = self._filters.get(len(points))
        if kept is None:
            config = self._config
            kept = self._filters[len(points)] = OneEuroFilter(
                config.smooth_min_cutoff_hz, config.smooth_beta, _SPEED_CUTOFF_HZ
            )
        smooth = kept.smooth(points.reshape(-1).astype(np.float64), dt_s, width_px)
        return smooth.reshape(points.shape).astype(np.float32)


class AlignStep:
    """A mesh, five points, the pose and what `align.extra` finds. See `state.Step`."""

    def __init__(
        self, mesh: FaceMesh, config: AlignConfig, extra: Sequence[LandmarkNetwork] = ()
    ) -> None:
        self._mesh = mesh
        self._config = config
        self._extra = extra
        self._kept: dict[int, _Aligned] = {}

    def prepare(self, token: Token) -> None:  # noqa: ARG002 - the network is the same for all
        """See `Step.prepare`: each network runs once."""
        frame = create_frame(64, 64)
        self._mesh.find(frame, MeshCrop(32.0, 32.0, 64.0, 0.0))
        points = (get_template("arcface_112_v2") * 64).astype(np.float32)
        face = Face(Track(0, Box(0.0, 0.0, 64.0, 64.0), points, 1.0, 0.0))
        for network in self._extra:
            network.find(frame, [face])

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.is_cut:
            self._kept.clear()
        ids = {face.track.track_id for face in state.faces}
        self._kept = {key: kept for key, kept in self._kept.items() if key in ids}
        everybody = "identify" in state.token.operations
        for face in state.faces:
            if (everybody or self._is_meant(face, state.dt_s)) and not self._carry(state, face):
                self._align(state.frame, face, state.dt_s)
        for network in self._extra:
            self._add_points(network, state)
        state.did = f"aligned {sum(face.mesh is not None for face in state.faces)}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._kept.clear()

    def _is_meant(self, face: Face, dt_s: float) -> bool:
        """Say whether an effect may ask for the mesh: of a chosen face, and one that just was."""
        kept = self._kept.get(face.track.track_id)
        if face.chosen:
            if kept is not None:
                kept.idle_s = 0.0
            return True
        if kept is None:
            return False
        kept.idle_s += dt_s
        if kept.idle_s > _LINGER_S:
            kept.restart()
            return False
        return True

    def _align(self, frame: Frame, face: Face, dt_s: float) -> None:
        """Fill the slots of `face`; without a mesh that can be trusted they stay empty."""
        track = face.track
        kept = self._kept.get(track.track_id)
        if kept is None:
            kept = self._kept[track.track_id] = _Aligned(self._config)
        found = self._follow(frame, kept, track)
        if found is None:
            kept.restart()
            found = self._begin(frame, track)
        kept.centre = _find_centre(track)
        if found is None:
            return
        wanted = create_crop_by_mesh(found.mesh)
        kept.crop = follow_crop(found.crop, wanted)
        kept.mesh = found.mesh
        self._fill(face, kept, dt_s)

    def _carry(self, state: FrameState, face: Face) -> bool:
        """Under load move the mesh with the face, never twice in a row, instead of looking."""
        kept = self._kept.get(face.track.track_id)
        if kept is None or kept.mesh is None:
            return False
        kept.turn += 1
        is_spared = state.is_late or state.rung.align_share < 1.0
        if not is_spared or kept.turn % 2 or face.track.missed:
            return False
        x, y = _find_centre(face.track)
        moved = np.array([x - kept.centre[0], y - kept.centre[1], 0.0], np.float32)
        kept.mesh, kept.centre = kept.mesh + moved, (x, y)
        if kept.crop is not None:
            kept.crop = kept.crop._replace(
                x=kept.crop.x + float(moved[0]), y=kept.crop.y + float(moved[1])
            )
        state.spared.add("align")
        self._fill(face, kept, state.dt_s)
        return True

    @staticmethod
    def _fill(face: Face, kept: _Aligned, dt_s: float) -> None:
        if kept.mesh is None:
            return
        face.mesh = kept.smooth(kept.mesh, dt_s, max(measure_width(kept.mesh), 1.0))
        face.landmarks[5] = convert_mesh_to_5(face.mesh)
        face.pose_rad = compute_pose(face.mesh)

    def _add_points(self, network: LandmarkNetwork, state: FrameState) -> None:
        faces = [face for face in state.faces if face.mesh is not None]
        for face, points in zip(faces, network.find(state.frame, faces), strict=True):
            kept = self._kept[face.track.track_id]
            smooth = kept.smooth(points, state.dt_s, max(face.track.box.width, 1.0))
            face.landmarks[len(points)] = smooth

    def _follow(self, frame: Frame, kept: _Aligned, track: Track) -> _Found | None:
        """Look where the face was; None: not there any more, or never seen."""
        if kept.crop is None:
            return None
        crop = kept.crop
        x, y = _find_centre(track)
        x, y = x - kept.centre[0], y - kept.centre[1]
        if max(abs(x), abs(y)) > _JUMP * crop.side:
            crop = crop._replace(x=crop.x + x, y=crop.y + y)
        try:
            mesh, score = self._mesh.find(frame, crop)
        except ModelError:
            # A crop that has fallen behind a quick face may show what this network fails on
            # (attention that points out of the crop); it would do so again in the next frame.
            return None
        if score < _KEEP_SCORE or not is_agreed(mesh, track):
            return None
        return _Found(mesh, score, crop)

    def _begin(self, frame: Frame, track: Track) -> _Found | None:
        """Look in the track's box, then once more where the first look found the face."""
        crop = create_crop_by_box(track.box, track.roll_rad)
        mesh, score = self._mesh.find(frame, crop)
        if score < _KEEP_SCORE:
            return None
        crop = create_crop_by_mesh(mesh)
        mesh, score = self._mesh.find(frame, crop)
        if score < _BEGIN_SCORE or not is_agreed(mesh, track):
            return None
        return _Found(mesh, score, crop)


def is_agreed(mesh: NDArray[np.float32], track: Track) -> bool:
    """Say whether `mesh` lies on the face that `track` follows.

    A track that the detector has lost is a guess: there the mesh may have gone as far as a face is
    wide, not over to another one.
    """
    x, y, size = _measure(convert_mesh_to_5(mesh))
    known_x, known_y, known_size = _measure(track.landmarks5)
    if not known_size < size * _MAX_RATIO or not size < known_size * _MAX_RATIO:
        return False
    apart = math.hypot(x - known_x, y - known_y)
    return apart <= (_MAX_APART_LOST if track.missed else _MAX_APART) * measure_width(mesh)


def _measure(landmarks5: NDArray[np.float32]) -> tuple[float, float, float]:
    """Return the middle of five points and how far they lie from it, in plain floats for speed."""
    points = landmarks5.tolist()
    x, y = sum(p[0] for p in points) / len(points), sum(p[1] for p in points) / len(points)
    return x, y, math.sqrt(sum((p[0] - x) ** 2 + (p[1] - y) ** 2 for p in points))


def _find_centre(track: Track) -> tuple[float, float]:
    box = track.box
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def create_align_step(context: StepContext) -> AlignStep:
    """Return the step; its networks are loaded.

    Raises:
        ModelError: a network cannot be had.
        ConfigError: `align.model` is no face mesh, or one of `align.extra` finds no landmarks.
    """
    config = context.config.align
    network = context.sessions.get(config.model, config.threads)
    if network.model.family != "facemesh":
        raise ConfigError(
            f"the model {config.model} is not a face mesh",
            hint="set align.model to facemesh_attention_478 or facemesh_468; "
            "other landmark networks go into align.extra",
        )
    extra = [
        create_landmark_network(name, context.config, context.sessions) for name in config.extra
    ]
    return AlignStep(FaceMesh(network), config, extra)
