"""The operation `puppet`: a portrait that moves as the wearer does, as the whole picture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from livefuse.errors import ConfigError
from livefuse.face import Box, Face
from livefuse.pipeline.analysis.portrait import analyse_portrait
from livefuse.pipeline.effects.avatar import check_avatar, get_drawing, is_avatar
from livefuse.pipeline.effects.puppet import AvatarPuppet, PhotoPuppet, Puppet
from livefuse.pipeline.effects.puppet_motion import MotionReader
from livefuse.pipeline.landmarks import convert_mesh_to_5
from livefuse.pipeline.source_keeper import SourceKeeper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token


class PuppetStep:
    """The whole picture replaced, whatever is found in it. See `state.Step`."""

    def __init__(self, keeper: SourceKeeper[Puppet]) -> None:
        self._keeper = keeper
        self._reader = MotionReader()
        self._wearer_id: int | None = None

    def prepare(self, token: Token) -> None:
        """See `Step.prepare`."""
        self._keeper.set_source(token.source_face)

    def run(self, state: FrameState) -> None:
        """See `Step.run`. Afterwards the picture's only face is the portrait's.

        A whole cover that was asked for (a face was just lost) is no longer needed: nothing of
        the picture is left.
        """
        self._keeper.follow(state.token.source_face)
        state.source_shown = self._keeper.shown
        if not state.token.parameters.shows_source:
            state.did = "off"
            return
        puppet = self._keeper.made
        if puppet is None:
            state.cover_reason = state.cover_reason or "no_portrait"
            state.did = f"covered; {self._keeper.problem}"
            return
        wearer = self._find_wearer(state)
        mesh = None if wearer is None else wearer.mesh
        if mesh is None:
            motion = self._reader.relax()
            state.did = "at rest"
        else:
            motion = self._reader.read(mesh, state.dt_s)
            state.did = "moved"
        shown = puppet.show(state.frame, motion, mesh)
        state.faces = []
        if wearer is not None:
            state.faces = [_create_shown(wearer, shown, is_drawn=puppet.is_drawn)]
        state.covers, state.cover_reason, state.person_mask = (), "", None
        if self._keeper.problem:
            state.did += f"; {self._keeper.problem}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._reader.reset()
        self._wearer_id = None

    def _find_wearer(self, state: FrameState) -> Face | None:
        """Return the face that moves the portrait: the same as before, else the largest chosen."""
        faces = [face for face in state.chosen if _has_sound_mesh(face)]
        same = next((face for face in faces if face.track.track_id == self._wearer_id), None)
        if same is not None:
            return same
        largest = max(faces, key=lambda face: face.track.box.width, default=None)
        if largest is not None:
            self._reader.reset()
            self._wearer_id = largest.track.track_id
        return largest


def _has_sound_mesh(face: Face) -> bool:
    return face.mesh is not None and bool(np.isfinite(face.mesh).all())


def _create_shown(wearer: Face, mesh: NDArray[np.float32], *, is_drawn: bool) -> Face:
    """Return the portrait's face as a face of the picture, so that what follows works on it."""
    low, high = mesh[:, :2].min(axis=0).tolist(), mesh[:, :2].max(axis=0).tolist()
    track = replace(
        wearer.track,
        box=Box(low[0], low[1], high[0], high[1]),
        landmarks5=convert_mesh_to_5(mesh),
        roll_rad=0.0,
    )
    return Face(
        track, mesh=mesh, person=wearer.person, chosen=True, is_replaced=True, is_drawn=is_drawn
    )


def create_puppet_step(context: StepContext) -> PuppetStep:
    """Return the step; its source is loaded by `prepare`."""

    def build(face_id: str) -> Puppet:
        if not face_id:
            raise ConfigError(
                "a puppet needs a source face",
                hint="set source_face to an enrolled face or avatar",
            )
        settings = context.config.puppet
        if is_avatar(face_id):
            return AvatarPuppet(get_drawing(check_avatar(face_id)), settings)
        source = context.services.load_source(face_id)
        mesh = analyse_portrait(source.picture_rgb, context.sessions, context.config).mesh
        return PhotoPuppet(source, mesh, settings)

    return PuppetStep(SourceKeeper(context.aside, build))
