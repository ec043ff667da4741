"""Which faces are meant: the token's selector. Who was meant stays meant until it is certain.

Two faces of nearly one size must not take turns, and a portrait on the wall must not take over
from the wearer: another face is chosen only when it has been ahead clearly and for a while.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from livefuse.face import Face
    from livefuse.token import Parameters

_PATIENCE_S: Final = 0.5


def _rank_size(face: Face) -> float:
    return math.log(max(face.track.box.width * face.track.box.height, 1.0))


def _rank_left(face: Face) -> float:
    box = face.track.box
    return -(box.x0 + box.x1) / (2 * max(box.width, 1.0))


# Selector -> how a face ranks (the highest is meant), and by how much another must be ahead: a
# fifth of the area, a quarter of a face's width.
_RANKS: Final[dict[str, tuple[Callable[[Face], float], float]]] = {
    "largest": (_rank_size, math.log(1.2)),
    "left-most": (_rank_left, 0.25),
}


class FaceSelector:
    """Remembers whom it chose. One instance for one stream and one thread."""

    def __init__(self) -> None:
        self._selector = ""
        self._chosen = -1
        self._rival = -1
        self._ahead_s = 0.0

    def choose(self, faces: Sequence[Face], parameters: Parameters, dt_s: float) -> None:
        """Set `chosen` of each face, `dt_s` after the frame before.

        Names (`reference`) match once the faces are identified: see `choose_known`.
        """
        if parameters.select not in _RANKS:
            self.reset()
            choose_known(faces, parameters)
            return
        if parameters.select != self._selector:
            self.reset()
            self._selector = parameters.select
        chosen = self._pick(faces, *_RANKS[parameters.select], dt_s)
        for face in faces:
            face.chosen = face is chosen

    def reset(self) -> None:
        """Forget whom it chose."""
        self._selector = ""
        self._chosen = self._rival = -1
        self._ahead_s = 0.0

    def _pick(
        self, faces: Sequence[Face], rank: Callable[[Face], float], margin: float, dt_s: float
    ) -> Face | None:
        if not faces:
            return None
        best = max(faces, key=rank)
        current = next((face for face in faces if face.track.track_id == self._chosen), None)
        if current is None:
            self._take(best)
            return best
        if best is current or rank(best) - rank(current) <= margin:
            self._rival = -1
            return current
        if best.track.track_id != self._rival:
            self._rival, self._ahead_s = best.track.track_id, 0.0
        self._ahead_s += dt_s
        if self._ahead_s <= _PATIENCE_S:
            return current
        self._take(best)
        return best

    def _take(self, face: Face) -> None:
        self._chosen, self._rival = face.track.track_id, -1


def choose_known(faces: Sequence[Face], parameters: Parameters) -> None:
    """Set `chosen` of each face by `all`, track id or name; other selectors are left alone."""
    for face in faces:
        match parameters.select:
            case "all":
                face.chosen = True
            case "id":
                face.chosen = str(face.track.track_id) in parameters.people
            case "reference":
                face.chosen = bool(face.person) and face.person in parameters.people
            case _:
                return
