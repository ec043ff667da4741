"""Beautify: the chosen faces made up as the token asks; amounts come and go without a pop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.pipeline.effects.beauty_amounts import (
    AmountRamp,
    Amounts,
    resolve_amounts,
    scale_amounts,
)
from livefuse.pipeline.effects.beauty_painter import BeautyPainter
from livefuse.pipeline.effects.beauty_sitter import Sitter
from livefuse.token import COVERING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livefuse.config import BeautifyConfig
    from livefuse.face import Face
    from livefuse.frame import Colour
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

_MS_PER_S: Final = 1000.0


class _Kept:
    """What is kept of one track: how far it has come in, and its painter's memory."""

    def __init__(self, presence: float) -> None:
        self.presence = presence
        self.sitter = Sitter()


class BeautifyStep:
    """Skin, tone, make-up and shape of the chosen faces. See `state.Step`."""

    def __init__(self, config: BeautifyConfig) -> None:
        self._ramp_s = config.ramp_ms / _MS_PER_S
        self._painter = BeautyPainter()
        self._kept: dict[int, _Kept] = {}
        self._asked: tuple[Mapping[str, float | str], Colour] | None = None
        self._target: Amounts | None = None
        self._ramp = AmountRamp(self._ramp_s)
        self._is_first = True

    def prepare(self, token: Token) -> None:
        """See `Step.prepare`; there is nothing to load."""

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        amounts = self._ramp.advance(self._resolve(state), state.dt_s)
        self._follow(state)
        if amounts.is_nothing:
            state.did = "nothing asked"
            return
        if state.cover_reason and not COVERING.isdisjoint(state.token.operations):
            state.did = "left to the whole cover"
            return
        painted = 0
        for face in state.chosen:
            kept = self._kept.get(face.track.track_id)
            if kept is None or kept.presence <= 0.0:
                continue
            scaled = scale_amounts(amounts, kept.presence)
            painted += self._painter.paint(state.frame, face, scaled, kept.sitter, state.dt_s)
        state.did = f"beautified {painted}"

    def reset(self) -> None:
        """See `Step.reset`."""
        self._kept.clear()
        self._ramp = AmountRamp(self._ramp_s)
        self._is_first = True

    def _resolve(self, state: FrameState) -> Amounts:
        asked = (state.token.parameters.beautify, state.frame.colour)
        if self._target is None or asked != self._asked:
            self._target = resolve_amounts(*asked)
            self._asked = asked
        return self._target

    def _follow(self, state: FrameState) -> None:
        """Let each face come in, and go out while it has no landmarks, over the ramp's time.

        Where there was no picture before (the first frame, a cut) there is nothing to pop.
        """
        at_once = self._is_first or state.is_cut or self._ramp_s <= 0.0
        self._is_first = False
        if state.is_cut:
            self._kept.clear()
        step = 1.0 if at_once else state.dt_s / self._ramp_s
        known = {face.track.track_id: face for face in state.faces}
        self._kept = {key: kept for key, kept in self._kept.items() if key in known}
        for key, face in known.items():
            kept = self._kept.setdefault(key, _Kept(0.0))
            way = step if _is_there(face) else -step
            kept.presence = min(max(kept.presence + way, 0.0), 1.0)


def _is_there(face: Face) -> bool:
    return face.chosen and face.mesh is not None and not face.is_drawn


def create_beautify_step(context: StepContext) -> BeautifyStep:
    """Return the step."""
    return BeautifyStep(context.config.beautify)
