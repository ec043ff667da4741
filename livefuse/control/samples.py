"""What a network is fed in practice: recorded while the steps work on the demo's moving head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.control.doctor.steps import StepTimer
from livefuse.errors import ModelError
from livefuse.runtime.session import SessionCache
from livefuse.token import NEEDS

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.runtime.batch import Feeds
    from livefuse.runtime.registry import Model
    from livefuse.runtime.session import Network

SAMPLES: Final = 24
# Task -> the operation whose step feeds such a network, and the section that names it.
_USERS: Final = {
    "detect": "detect",
    "align": "align",
    "identify": "identify",
    "swap": "swap",
    "enhance": "enhance",
    "background": "background",
}


class _Recorder(SessionCache):
    """Keeps a copy of what the network `name` is fed."""

    def __init__(self, config: Config, name: str) -> None:
        super().__init__(msgspec.structs.replace(config.models, providers="cpu", precision="fp32"))
        self._name = name
        self.samples: list[Feeds] = []

    def get(self, name: str, threads: int = 1) -> Network:
        network = super().get(name, threads)
        if name == self._name:
            network.observer = self._keep
        return network

    def _keep(self, feeds: Feeds) -> None:
        if any(value.any() for value in feeds.values()):  # a trial on black teaches nothing
            self.samples.append({name: value.copy() for name, value in feeds.items()})


def record_samples(config: Config, model: Model, count: int = SAMPLES) -> list[Feeds]:
    """Return what `model` is fed on `count` moments of the demo, all of one shape.

    Raises:
        ModelError: the steps do not use such a network, or it was never asked.
        LivefuseError: a step cannot be had.
    """
    operation = _USERS.get(model.task, "")
    if not operation:
        raise ModelError(
            f"{model.name} is not run by a step of its own, so its ranges cannot be measured",
            hint="use --precision fp16",
        )
    section = msgspec.structs.replace(getattr(config, operation), model=model.name)
    config = msgspec.structs.replace(config, **{operation: section})
    sessions = _Recorder(config, model.name)
    timer = StepTimer(config, rounds=count, sessions=sessions, seconds_apart=0.4)
    timer.measure((*NEEDS.get(operation, ()), operation))
    shapes = [_get_shapes(feeds) for feeds in sessions.samples]
    if not shapes:
        raise ModelError(f"{model.name} was never asked", hint="use --precision fp16")
    usual = max(set(shapes), key=shapes.count)
    return [feeds for feeds in sessions.samples if _get_shapes(feeds) == usual][:count]


def _get_shapes(feeds: Feeds) -> tuple[tuple[int, ...], ...]:
    return tuple(value.shape for value in feeds.values())
