"""The operation `enhance`: the chosen faces clearer, by the configured family.

What is gained fades in and out within three frames, so that a picture never jumps when a rung is
changed. A frame that has no time shows what the one before gained, which costs next to nothing;
when that gets old it fades out. `enable_gfpgan` false in the token switches a restorer network
off, whatever its family; the classical way is not a restorer and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.errors import ConfigError
from livefuse.geometry import measure_radius
from livefuse.pipeline.effects import enhance_network
from livefuse.pipeline.effects.enhance_classical import create_classical_enhancer
from livefuse.pipeline.effects.enhance_network import create_network_enhancer
from livefuse.token import COVERING

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import EnhanceConfig
    from livefuse.face import Face
    from livefuse.pipeline.effects.families import Enhancer
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.token import Token

_FADE_FRAMES: Final = 3
_OLDEST: Final = 6  # frames that a gain is shown for at most when there is no time for a new one
_UNSEEN: Final = 0.01  # of the amount: nobody sees it, and nothing is left out for it
_INSIDE: Final = 0.7  # a face whose middle lies so far inside a cover has nothing left to enhance


class EnhanceStep:
    """Each chosen face clearer. See `state.Step`."""

    def __init__(self, enhancer: Enhancer, config: EnhanceConfig, *, is_restorer: bool) -> None:
        self._enhancer = enhancer
        self._config = config
        self._is_restorer = is_restorer
        self._steps: dict[int, int] = {}  # of each track, how far it has faded in
        self._age: int | None = None  # of the last gain, in frames; None: there is none

    def prepare(self, token: Token) -> None:  # noqa: ARG002 - it may be switched on later
        """See `Step.prepare`."""
        self._enhancer.prepare()

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.cover_reason and not COVERING.isdisjoint(state.token.operations):
            state.did = "left to the whole cover"
            self._forget()
            return
        is_off = not self._is_on(state.token) or self._config.amount <= 0.0
        if state.is_cut:
            self.reset()
        chosen = [
            face for face in state.chosen if not face.is_drawn and not is_covered(state, face)
        ]
        reuse = self._fade(state, chosen, is_off=is_off)
        if not any(self._steps.values()):
            self._age = None
            if state.is_sounding and chosen and not is_off:
                self._sound(state, chosen)
                return
            state.did = "off" if is_off else "spared" if chosen else "enhanced 0"
            state.is_enhanced = False if chosen and not is_off else None
            if not is_off:
                state.spared.add("enhance")
            return
        if reuse:
            state.spared.add("enhance")
        done = sum(self._enhance(state, face, reuse=reuse) for face in chosen)
        state.is_enhanced = True
        state.did = f"enhanced {done}" + (" as before" if reuse else "")

    def reset(self) -> None:
        """See `Step.reset`."""
        self._forget()
        self._enhancer.reset()

    def _forget(self) -> None:
        self._steps.clear()
        self._age = None

    def _fade(self, state: FrameState, faces: list[Face], *, is_off: bool) -> bool:
        """Move each face by a step; say whether to show what the frame before gained."""
        age = None if self._age is None else self._age + 1
        every_n = max(self._config.every_n, round(1 / (state.rung.enhance_share or 1.0)))
        is_over = is_off or not state.rung.enhance_share
        is_over = is_over or (state.is_late and age is not None and age > _OLDEST)
        reuse = age is not None and (is_over or state.is_late or age < every_n)
        self._age = age if reuse else 0
        before, self._steps = self._steps, {}
        for face in faces:
            known = before.get(face.track.track_id, 0)
            # Who is new has to wait for a frame that has time.
            change = -1 if is_over else int(known > 0 or not state.is_late)
            self._steps[face.track.track_id] = min(max(known + change, 0), _FADE_FRAMES)
        return reuse

    def _sound(self, state: FrameState, faces: list[Face]) -> None:
        """Do the whole work so that its cost is known, and show next to nothing of it."""
        amount = _UNSEEN * self._config.amount
        done = sum(self._enhancer.enhance(state, face, amount) for face in faces)
        state.did = f"sounded {done}"
        state.is_enhanced = False

    def _is_on(self, token: Token) -> bool:
        return token.parameters.enable_gfpgan or not self._is_restorer

    def _enhance(self, state: FrameState, face: Face, *, reuse: bool) -> bool:
        share = self._steps[face.track.track_id] / _FADE_FRAMES
        return share > 0.0 and self._enhancer.enhance(
            state, face, self._config.amount * share, reuse=reuse
        )


def is_covered(state: FrameState, face: Face) -> bool:
    """Say whether the middle of `face` lies under a cover."""
    box = face.track.box
    middle = np.array([[(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]])
    return any(float(measure_radius(cover, middle)[0]) < _INSIDE for cover in state.covers)


# An enhancer that no network of the user's makes, by the name in enhance.model.
ENHANCERS: Final[dict[str, Callable[[StepContext], Enhancer]]] = {
    "classical": create_classical_enhancer,
}


def create_enhance_step(context: StepContext) -> EnhanceStep:
    """Return the step; its network is loaded.

    Raises:
        ModelError: the network cannot be had.
        ConfigError: it does not enhance faces.
    """
    config = context.config.enhance
    if config.model in ENHANCERS:
        return EnhanceStep(ENHANCERS[config.model](context), config, is_restorer=False)
    network = context.sessions.get(config.model, config.threads)
    if network.model.family not in enhance_network.FAMILIES:
        raise ConfigError(
            f"the model {config.model} does not enhance faces",
            hint=f"set enhance.model to {', '.join(ENHANCERS)} or to a network of one of the "
            f"families {', '.join(enhance_network.FAMILIES)}",
        )
    return EnhanceStep(create_network_enhancer(context), config, is_restorer=True)
