"""Drawn avatars: which there are, and the swapper that puts one on a face.

Nobody's likeness: they are drawn by the code of this folder and need no consent. A token names
one as `avatar:NAME` in `source_face`.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.errors import ConfigError
from livefuse.frame import Colour
from livefuse.pipeline.effects.avatar_fox import draw_fox
from livefuse.pipeline.effects.avatar_porcelain import draw_porcelain
from livefuse.pipeline.effects.avatar_render import AvatarRenderer, Drawing, Wearer
from livefuse.pipeline.effects.avatar_robot import draw_robot

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.face import Face, SourceFace
    from livefuse.pipeline.state import FrameState

AVATAR_PREFIX: Final = "avatar:"
_WHOLE_FROM: Final = 0.85
"""The default `blend_ratio` shows an avatar whole: what shines through a drawing is a ghost."""


class Avatar(NamedTuple):
    """An avatar's names for people, and who draws it."""

    name_en: str
    name_zh: str
    draw: Callable[[], Drawing]


AVATARS: Final[dict[str, Avatar]] = {
    "robot": Avatar("Robot", "机器人", draw_robot),
    "fox": Avatar("Fox", "小狐狸", draw_fox),
    "porcelain": Avatar("Porcelain", "金缮瓷偶", draw_porcelain),
}


def is_avatar(face_id: str) -> bool:
    """Say whether a token's `source_face` names a drawing."""
    return face_id.startswith(AVATAR_PREFIX)


def check_avatar(face_id: str) -> str:
    """Return the avatar's name that `face_id` (`avatar:NAME`) holds.

    Raises:
        ConfigError: there is none of that name; the nearest is told.
    """
    name = face_id.removeprefix(AVATAR_PREFIX)
    if name in AVATARS:
        return name
    near = difflib.get_close_matches(name, AVATARS, n=1, cutoff=0.4)
    guess = f"did you mean {AVATAR_PREFIX}{near[0]}? " if near else ""
    known = ", ".join(f"{AVATAR_PREFIX}{known}" for known in AVATARS)
    raise ConfigError(f"there is no avatar {name[:40]!r}", hint=f"{guess}the avatars are {known}")


@cache
def get_drawing(name: str) -> Drawing:
    """Return the drawing called `name`; drawn once in a process, which takes a second."""
    return AVATARS[name].draw()


class AvatarSwapper:
    """Puts one avatar on faces. See `families.Swapper`: prepared in any thread, used by one."""

    def __init__(self) -> None:
        self._renderer: AvatarRenderer | None = None
        self._wearers: dict[int, Wearer] = {}

    def prepare(self, source: SourceFace, mesh: NDArray[np.float32] | None = None) -> None:
        """Draw the avatar that `source.face_id` names; takes a second the first time.

        Raises:
            ConfigError: there is none of that name.
        """
        del mesh  # known by construction
        self.prepare_by_id(source.face_id)

    def prepare_by_id(self, face_id: str) -> None:
        """Draw the avatar `avatar:NAME`.

        Raises:
            ConfigError: there is none of that name.
        """
        renderer = AvatarRenderer(get_drawing(check_avatar(face_id)))
        for matrix in ("bt709", "bt601"):
            renderer.prepare(Colour(matrix))
        self._renderer = renderer

    def swap(self, state: FrameState, face: Face) -> bool:
        """See `Swapper.swap`."""
        amount = min(state.token.parameters.blend_ratio / _WHOLE_FROM, 1.0)
        if amount <= 0.0 or self._renderer is None or face.mesh is None:
            return False
        seen = {other.track.track_id for other in state.faces}
        self._wearers = {key: kept for key, kept in self._wearers.items() if key in seen}
        wearer = self._wearers.setdefault(face.track.track_id, Wearer())
        occluder = None
        if face.occlusion is not None and face.occlusion_box is not None:
            occluder = face.occlusion, face.occlusion_box
        face.is_drawn = self._renderer.draw(state.frame, face.mesh, wearer, amount, occluder)
        return face.is_drawn

    def reset(self) -> None:
        """See `Swapper.reset`."""
        self._wearers.clear()
