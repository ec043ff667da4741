"""Which of the faces that are there a frame's token promises to hide, as the README tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from livefuse.token import COVERING, GENERATING, HIDING

if TYPE_CHECKING:
    from livefuse.pipeline.state import Outcome
    from livefuse.token import Token
    from tests.fuzz.scene import TrueFace

WHOLE_FROM: Final = 0.85
"""From this blend_ratio on an avatar hides its wearer; below, the wearer is to shine through."""
_CLEARLY_LARGER: Final = 1.45
_CLEARLY_LEFT: Final = 0.5
_SETTLED: Final = 60
"""Frames for which the same face must have been meant: the selector has patience, a face that has
gone is held for a while, and until then it is open who is meant."""

Key = tuple[int, int]


@dataclass
class Chosen:
    """Who is meant by `largest` and `left-most`, as far as that is beyond doubt."""

    _since: dict[str, tuple[Key | None, int, frozenset[Key]]] = field(default_factory=dict)

    def note(self, faces: list[TrueFace]) -> dict[str, Key | None]:
        """Take the next frame's faces; return for each selector who is meant, None: open."""
        keys = frozenset(face.key for face in faces)
        clear = {"largest": _find_largest(faces), "left-most": _find_leftmost(faces)}
        settled: dict[str, Key | None] = {}
        for selector, key in clear.items():
            before = self._since.get(selector, (None, 0, frozenset()))
            frames = before[1] + 1 if (before[0], before[2]) == (key, keys) else 0
            self._since[selector] = key, frames, keys
            settled[selector] = key if frames >= _SETTLED else None
        return settled

    def unsettle(self) -> None:
        """Somebody was lost sight of: begin to count anew."""
        self._since.clear()


def is_promised(face: TrueFace, outcome: Outcome, chosen: dict[str, Key | None]) -> bool:
    """Say whether `face` must not be seen in the picture that `outcome` tells of."""
    token = outcome.token
    operations = set(token.operations)
    if token.parameters.cover_all:
        return True
    # What fails with `hold` shows the last good picture: of that, what its token asks for.
    is_last_good = bool(outcome.error) and token.parameters.on_failure == "hold"
    if (outcome.error or not outcome.vouched) and operations & HIDING and not is_last_good:
        return True
    if outcome.covered_whole and operations & COVERING and not is_last_good:
        return True
    if "puppet" in operations:
        return token.parameters.blend_ratio > 0.0
    return _is_meant(face, token, chosen)


def _is_meant(face: TrueFace, token: Token, chosen: dict[str, Key | None]) -> bool:
    parameters, operations = token.parameters, set(token.operations)
    is_chosen: bool | None = True
    if parameters.select != "all":
        known = chosen.get(parameters.select)
        is_chosen = None if known is None else known == face.key
    swaps = "swap" in operations and parameters.blend_ratio >= WHOLE_FROM
    if swaps and is_chosen:
        return True
    if "blur" not in operations:
        return False
    whom = parameters.blur_whom
    if whom == "auto":
        whom = "others" if operations & GENERATING else "chosen"
    if whom == "all":
        return True
    if whom == "others" and swaps:
        return True  # who is not covered has been replaced, whoever is meant
    return is_chosen is (whom == "chosen")


def _find_largest(faces: list[TrueFace]) -> Key | None:
    ranked = sorted(faces, key=lambda face: -face.height_px)
    if len(ranked) > 1 and ranked[0].height_px < _CLEARLY_LARGER**0.5 * ranked[1].height_px:
        return None
    return ranked[0].key if ranked else None


def _find_leftmost(faces: list[TrueFace]) -> Key | None:
    ranked = sorted(faces, key=lambda face: face.centre[0])
    if len(ranked) > 1:
        apart = ranked[1].centre[0] - ranked[0].centre[0]
        if apart < _CLEARLY_LEFT * max(face.height_px for face in ranked[:2]):
            return None
    return ranked[0].key if ranked else None
