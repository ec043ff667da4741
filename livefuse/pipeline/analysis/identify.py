"""Who is who: vectors of the faces, the gallery's names, people kept apart from tracks.

The network is dear, so a face is looked at when it is new, every n-th frame, when it shows itself
better than before and when it may have been mixed up with another: one look a frame, but that all
new faces are looked at at once, since until then nobody knows whether they are meant.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.errors import ConfigError
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.attributes import describe_attributes
from livefuse.pipeline.analysis.embed import create_embedder
from livefuse.pipeline.analysis.gallery import Gallery
from livefuse.pipeline.analysis.identity import Followed, Likeness, People
from livefuse.pipeline.analysis.pose import measure_width
from livefuse.pipeline.analysis.select import choose_known
from livefuse.pipeline.landmarks import get_landmarks5
from livefuse.pipeline.templates import get_template

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from livefuse.config import IdentifyConfig
    from livefuse.face import Face
    from livefuse.pipeline.analysis.embed import Embedder
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

_MAX_NEW: Final = 4  # new faces looked at in one frame, live
_BETTER: Final = 1.25
_REST_FRAMES: Final = 3  # between two looks that only quality asks for
_SOON: Final = (0, 3, 8)  # frames from look to look while a face is new
_GOOD_WIDTH_PX: Final = 112.0
_NO_MESH_QUALITY: Final = 0.2
_NEAR: Final = 1.1  # of the mean width: centres closer than that are a crowd
_GALLERY_S: Final = 5.0


class IdentifyStep:
    """Vectors, names and numbers of the faces. See `state.Step`."""

    def __init__(
        self,
        embedder: Embedder,
        context: StepContext,
    ) -> None:
        config = context.config.identify
        self._embedder = embedder
        self._config = config
        self._context = context
        self._likeness = _find_likeness(embedder, config)
        self._people = People(self._likeness)
        self._gallery = Gallery((), embedder.length)
        self._refreshed_s = 0.0
        self._refresh: Future[None] | None = None

    def prepare(self, token: Token) -> None:
        """See `Step.prepare`: the network runs once, the gallery is read.

        Raises:
            ConfigError: the token means somebody by name whom nobody has enrolled.
        """
        points = (get_template("arcface_112_v2") * 64).astype(np.float32)
        vectors = self._embedder.embed(create_frame(64, 64), [points])
        self._read_gallery(vectors.shape[1])
        if token.parameters.select == "reference":
            check_people(token.parameters.people, self._gallery.people)

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        self._keep_gallery(state.dt_s)
        people = self._people
        people.update({face.track.track_id for face in state.faces}, state.dt_s)
        self._note_crowds(state.faces)
        due = self._list_due(state.faces)
        if due:
            vectors = self._embedder.embed(state.frame, [get_landmarks5(face) for face in due])
            for face, vector, sharp in zip(due, vectors, self._embedder.sharpness, strict=True):
                rate = _rate(face)
                people.note_look(face.track.track_id, vector, rate * sharp, self._gallery)
                followed = people.tracks[face.track.track_id]
                followed.quality = max(followed.quality, rate)
        for face in state.faces:
            self._fill(state, face)
        for face in state.faces:  # last: a second try after an error needs the tracker's numbers
            number = people.tracks[face.track.track_id].person.number
            if number != face.track.track_id:
                face.track = replace(face.track, track_id=number)
        choose_known(state.faces, state.token.parameters)
        known = sum(bool(face.person) for face in state.faces)
        state.did = f"looked at {len(due)}, knew {known} of {len(state.faces)}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._people.forget()

    def _fill(self, state: FrameState, face: Face) -> None:
        followed = self._people.tracks[face.track.track_id]
        person = followed.person
        by_name = state.token.parameters.select == "reference"
        face.is_doubtful = by_name and (not followed.looks or bool(followed.doubts))
        face.embedding = person.mean
        face.person, face.similarity = person.name, person.similarity
        face.attributes = describe_attributes(state.frame, face)

    def _list_due(self, faces: list[Face]) -> list[Face]:
        """Return whom to look at in this frame: all who are new, else the one it is most due."""
        tracks = self._people.tracks
        able = [face for face in faces if not face.track.missed]
        new = [face for face in able if not tracks[face.track.track_id].looks]
        if new:
            return new if self._context.every_frame else new[:_MAX_NEW]
        ranked = [(self._rate_need(tracks[face.track.track_id], face), face) for face in able]
        need, face = max(ranked, key=lambda pair: pair[0], default=(0.0, None))
        return [face] if face is not None and need >= 1.0 else []

    def _rate_need(self, followed: Followed, face: Face) -> float:
        """Return how due a look is: from 1 up it is."""
        if face.mesh is None:
            return 0.0
        if followed.is_urgent:
            return math.inf
        pause = self._config.every_n
        if followed.looks < len(_SOON):
            pause = min(pause, _SOON[followed.looks])
        if followed.doubts:
            pause = min(pause, _REST_FRAMES)
        need = followed.frames_since / pause
        if need < 1.0 and followed.frames_since >= _REST_FRAMES:
            return 1.0 if _rate(face) > _BETTER * followed.quality else need
        return need

    def _note_crowds(self, faces: list[Face]) -> None:
        """Mark tracks that are close together; once apart they are looked at anew."""
        for face in faces:
            followed = self._people.tracks[face.track.track_id]
            crowded = any(_are_near(face, other) for other in faces if other is not face)
            if followed.is_crowded and not crowded:
                followed.is_urgent = True
            followed.is_crowded = crowded

    def _keep_gallery(self, dt_s: float) -> None:
        """Read the gallery again now and then, aside: people are enrolled while streams run."""
        self._refreshed_s += dt_s
        if self._refreshed_s < _GALLERY_S or (self._refresh and not self._refresh.done()):
            return
        self._refreshed_s = 0.0
        self._refresh = self._context.aside.submit(self._read_gallery, self._embedder.length)

    def _read_gallery(self, length: int) -> None:
        self._gallery = Gallery(self._context.services.list_gallery(), length)


def check_people(asked: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names that nobody has: a swap of nobody would leave everybody bare.

    Raises:
        ConfigError: the first such name, with the nearest right one.
    """
    for name in asked:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        names = ", ".join(known) or "nobody yet"
        raise ConfigError(
            f"nobody called {name!r} is enrolled",
            hint=f"{guess}known are {names}; livefuse faces enroll adds people",
        )


def _find_likeness(embedder: Embedder, config: IdentifyConfig) -> Likeness:
    """Return the family's bounds, moved together where the config sets the upper one."""
    if config.min_similarity <= 0.0:
        return Likeness(embedder.same, embedder.keep)
    return Likeness(config.min_similarity, config.min_similarity - (embedder.same - embedder.keep))


def _rate(face: Face) -> float:
    """Return how much a look at `face` is worth, 0..1: from the front, and large enough."""
    if face.mesh is None:
        return _NO_MESH_QUALITY
    yaw, pitch, _ = face.pose_rad
    frontal = max(math.cos(yaw), 0.0) * max(math.cos(pitch), 0.0)
    return frontal * frontal * min(measure_width(face.mesh) / _GOOD_WIDTH_PX, 1.0)


def _are_near(one: Face, other: Face) -> bool:
    a, b = one.track.box, other.track.box
    x, y = (a.x0 + a.x1 - b.x0 - b.x1) / 2, (a.y0 + a.y1 - b.y0 - b.y1) / 2
    return math.hypot(x, y) < _NEAR * (a.width + b.width) / 2


def create_identify_step(context: StepContext) -> IdentifyStep:
    """Return the step; its network is loaded.

    Raises:
        ModelError: the network cannot be had.
        ConfigError: it tells nobody apart.
    """
    return IdentifyStep(create_embedder(context.config, context.sessions), context)
