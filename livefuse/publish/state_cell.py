"""What an output is doing, the sentence that goes with it, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.clock import NS_PER_S

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.publish.base import OutputState


class StateCell:
    """One output's state. Not thread-safe: its owner has the lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ns = clock.now_ns()
        self.state: OutputState = "connecting"
        self.error = ""

    def change(self, state: OutputState, error: str = "") -> None:
        """Note the state of now; the same state again, with another sentence, goes on."""
        if state != self.state:
            self._since_ns = self._clock.now_ns()
        self.state, self.error = state, error

    def count_seconds(self) -> float:
        """Return for how long it has been in this state (s)."""
        return round((self._clock.now_ns() - self._since_ns) / NS_PER_S, 1)
