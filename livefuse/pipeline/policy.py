"""What becomes of a frame that may not be seen, and whether a source may still be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.clock import NS_PER_S
from livefuse.token import GENERATING

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.pipeline.state import FrameState
    from livefuse.token import Parameters, Token

    _Asked = tuple[tuple[str, ...], Parameters, str]

_EVERY_NS: Final = NS_PER_S  # a revoked consent must be obeyed within five seconds
_MAX_HELD: Final = 30


class ConsentWatch:
    """Asks once a second whether the source of a swap may still be shown.

    `holds` and `refusal`, the words for why it does not, belong to one thread; `shown` is one
    reference, which another may replace; `may_show` asks anew, from any thread.
    """

    def __init__(
        self, is_allowed: Callable[[str], bool], explain: Callable[[str], str] | None = None
    ) -> None:
        self._is_allowed = is_allowed
        self._explain = explain
        self.refusal = ""
        self.shown = ""
        self._asked: set[str] = set()
        self._asked_ns = 0
        self._answer = True

    def holds(self, token: Token, now_ns: int) -> bool:
        """Say whether what `token` shows may be shown at `now_ns` (monotonic)."""
        if GENERATING.isdisjoint(token.operations):
            return True
        faces = self._list_faces(token)
        if faces != self._asked or now_ns - self._asked_ns >= _EVERY_NS:
            self._asked, self._asked_ns = faces, now_ns
            refused = next((face for face in faces if not self._is_allowed(face)), None)
            self._answer = refused is None
            self.refusal = "" if refused is None else self._tell(refused)
        return self._answer

    def _tell(self, face: str) -> str:
        words = self._explain(face) if self._explain is not None else ""
        return words or "the source face may not be shown any more: pictures are covered"

    def may_show(self, token: Token) -> bool:
        """Say whether what `token` shows may be shown now."""
        if GENERATING.isdisjoint(token.operations):
            return True
        return all(map(self._is_allowed, self._list_faces(token)))

    def _list_faces(self, token: Token) -> set[str]:
        # A source that is wanted is not yet shown: until it is built the one before still is.
        return {token.source_face, self.shown} - {""}


class HeldPicture:
    """The last good picture, for tokens whose `on_failure` is `hold`. One thread.

    It is good for what was asked then: a token that hides more than the one before, or other
    people, must not show it.
    """

    def __init__(self) -> None:
        self._buffer: NDArray[np.uint8] | None = None
        self._asked: _Asked | None = None
        self._shown = 0

    def serve(self, state: FrameState, *, must_cover: bool) -> bool:
        """Keep a good picture, or show the kept one instead of a failed frame.

        False: nothing was shown: no other policy is asked for, the frame has another reason to be
        covered than a failed step, or the picture has stood for 30 frames.
        """
        if state.token.parameters.on_failure != "hold":
            return False
        buffer, asked = state.frame.buffer, _tell_asked(state.token)
        if not state.error and not must_cover:
            if self._buffer is None or self._buffer.shape != buffer.shape:
                self._buffer = np.empty_like(buffer)
            np.copyto(self._buffer, buffer)
            self._asked, self._shown = asked, 0
            return False
        is_failure = bool(state.error) and state.cover_reason == "step_failed"
        if not is_failure or self._buffer is None or self._buffer.shape != buffer.shape:
            return False
        if self._asked != asked:
            return False
        self._shown += 1
        if self._shown > _MAX_HELD:
            return False
        np.copyto(buffer, self._buffer)
        return True


def _tell_asked(token: Token) -> _Asked:
    return token.operations, token.parameters, token.source_face
