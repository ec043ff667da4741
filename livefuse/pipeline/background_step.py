"""The operation `background`: the person is found, what is behind is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.errors import ModelError
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.person import PersonMask
from livefuse.pipeline.effects.background import Background
from livefuse.pipeline.planes import shrink_plane

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import BackgroundConfig
    from livefuse.frame import Frame
    from livefuse.pipeline.state import FrameState, StepContext
    from livefuse.runtime.session import Network
    from livefuse.token import Token

_LONG_SIDE: Final = 480
_LOOK: Final = 64


class BackgroundStep:
    """A blurred background, or another. See `state.Step`."""

    def __init__(self, network: Network, config: BackgroundConfig) -> None:
        """Make the style ready.

        Raises:
            ConfigError: style is picture, and its file is missing or not a picture.
        """
        self._config = config
        self._person = PersonMask(network, config.every_n)
        self._background = Background(config)
        self._small: Frame | None = None
        self._size = (0, 0)

    def prepare(self, token: Token) -> None:  # noqa: ARG002 - the network is the same for all
        """See `Step.prepare`: the network runs once."""
        self._person.find(create_frame(_LOOK, _LOOK))
        self._person.reset()

    def run(self, state: FrameState) -> None:
        """See `Step.run`. Whoever hides a room wants it hidden: when in doubt all is background."""
        if self._config.strength <= 0.0:
            state.did = "off"
            return
        small = self._shrink(state.frame)
        state.did = self._config.style
        try:
            state.person_mask = self._person.find(small, is_cut=state.is_cut)
        except ModelError as error:
            self._person.reset()
            state.person_mask = np.zeros(small.y.shape, np.uint8)
            state.did = f"all hidden, {error.message}"
        self._background.lay(state.frame, small, state.person_mask)

    def reset(self) -> None:
        """See `Step.reset`."""
        self._person.reset()

    def _shrink(self, frame: Frame) -> Frame:
        """Return the frame by halves of its size, at most 480 px long; kept."""
        if self._small is None or self._size != (frame.width, frame.height):
            self._size = (frame.width, frame.height)
            self._small = create_frame(*_choose_size(*self._size))
        small = self._small
        planes: tuple[tuple[NDArray[np.uint8], NDArray[np.uint8]], ...] = (
            (frame.y, small.y),
            (frame.u, small.u),
            (frame.v, small.v),
        )
        for plane, target in planes:
            shrink_plane(plane, target)
        return small


def _choose_size(width: int, height: int) -> tuple[int, int]:
    divisor = 1
    while max(width, height) / divisor > _LONG_SIDE:
        divisor *= 2
    return 2 * max(1, round(width / divisor / 2)), 2 * max(1, round(height / divisor / 2))


def create_background_step(context: StepContext) -> BackgroundStep:
    """Return the step; its network is loaded.

    Raises:
        ModelError: the network cannot be had.
        ConfigError: style is picture, and its file is missing or not a picture.
    """
    config = context.config.background
    return BackgroundStep(context.sessions.get(config.model, config.threads), config)
