"""Steps without networks, a replay of them, and what a test asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from livefuse.clock import SystemClock
from livefuse.config import Config
from livefuse.job.spec import JobSpec
from livefuse.pipeline.steps import STEPS
from livefuse.replay import Replay
from livefuse.virtual import Costs, TableCosts
from livefuse.workers.local import Worker

if TYPE_CHECKING:
    import pytest

    from livefuse.config import Mode
    from livefuse.pipeline.state import FrameState
    from livefuse.replay import KnownCosts, Recorded
    from livefuse.token import Token


class PlainStep:
    """Does nothing, at once."""

    def prepare(self, token: Token) -> None:
        pass

    def run(self, state: FrameState) -> None:
        pass

    def reset(self) -> None:
        pass


def use_plain_steps(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Put steps that do nothing in the place of `names`."""
    for name in names:
        monkeypatch.setitem(STEPS, name, lambda _context: PlainStep())


def create_config(**sections: dict[str, object]) -> Config:
    """Return a configuration with these keys set, and no HTTP."""
    tree = msgspec.to_builtins(Config())
    for section, keys in {"http": {"enabled": False}, **sections}.items():
        tree[section] |= keys
    return msgspec.convert(tree, Config)


def create_replay(
    recording: Recorded,
    *,
    operations: tuple[str, ...] = ("detect", "blur"),
    costs: KnownCosts | dict[str, float] | None = None,
    mode: Mode = "live",
    targets: tuple[str, ...] = (),
    config: Config | None = None,
) -> Replay:
    """Return a replay, not yet run."""
    config = config or create_config()
    spec = JobSpec("replay:made", targets, operations, mode=mode)
    worker = Worker(config, SystemClock())
    model = (
        TableCosts(Costs(costs_ms=costs or {}))
        if costs is None or isinstance(costs, dict)
        else costs
    )
    return Replay(spec, config, recording, worker.create_pipeline, model)
