"""The operation `enhance`: the chosen faces clearer, by the configured family.

What is gained fades in within three frames. `enable_gfpgan` false in the token switches a
restorer network off, whatever its family; the classical way is not a restorer and stays.
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
_INSIDE: Final = 0.7  # a face whose middle lies so far inside a cover has nothing left to enhance


class EnhanceStep:
    """Each chosen face clearer. See `state.Step`."""

    def __init__(self, enhancer: Enhancer, config: EnhanceConfig, *, is_restorer: bool) -> None:
        self._enhancer = enhancer
        self._config = config
        self._is_restorer = is_restorer
        self._shares: dict[int, float] = {}
        self._turn = 0

    def prepare(self, token: Token) -> None:  # noqa: ARG002 - it may be switched on later
        """See `Step.prepare`."""
        self._enhancer.prepare()

    def run(self, state: FrameState) -> None:
        """See `Step.run`."""
        if state.cover_reason and not COVERING.isdisjoint(state.token.operations):
            state.did = "left to the whole cover"
            return
        if not self._is_on(state.token) or self._config.amount <= 0.0:
            self._shares.clear()
            state.did = "off"
            return
        if state.is_cut:
            self.reset()
        reuse = self._is_spared(state)
        if reuse:
            state.spared.add("enhance")
        chosen = [
            face for face in state.chosen if not face.is_drawn and not is_covered(state, face)
        ]
        self._shares = {
            face.track.track_id: self._shares.get(face.track.track_id, 0.0) for face in chosen
        }
        step = 1.0 / _FADE_FRAMES if state.rung.enhance_share else -1.0 / _FADE_FRAMES
        for track_id, known in self._shares.items():
            self._shares[track_id] = min(max(known + step, 0.0), 1.0)
        if not any(self._shares.values()):
            state.did = "spared" if chosen else "enhanced 0"
            state.spared.add("enhance")
            return
        done = sum(self._enhance(state, face, reuse=reuse) for face in chosen)
        state.did = f"enhanced {done}" + (" as before" if reuse else "")

    def reset(self) -> None:
        """See `Step.reset`."""
        self._shares.clear()
        self._turn = 0
        self._enhancer.reset()

    def _is_spared(self, state: FrameState) -> bool:
        """Say whether this frame shows what the one before gained."""
        share = state.rung.enhance_share
        every_n = max(self._config.every_n, round(1 / share) if share else 1)
        self._turn += 1
        return state.is_late or (self._turn - 1) % every_n != 0

    def _is_on(self, token: Token) -> bool:
        return token.parameters.enable_gfpgan or not self._is_restorer

    def _enhance(self, state: FrameState, face: Face, *, reuse: bool) -> bool:
        share = self._shares[face.track.track_id]
        return self._enhancer.enhance(state, face, self._config.amount * share, reuse=reuse)


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
