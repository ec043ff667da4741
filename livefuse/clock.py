"""Time as an argument: ints in nanoseconds, monotonic; the wall clock only for logs and tokens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import threading

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000


class Clock(Protocol):
    """What the rest of livefuse knows of time."""

    def now_ns(self) -> int:
        """Return monotonic time in nanoseconds."""
        ...

    def epoch_s(self) -> float:
        """Return wall time in seconds since 1970, for logs and tokens only."""
        ...

    def wait(self, event: threading.Event, timeout_ns: int) -> bool:
        """Wait for `event` at most `timeout_ns`; return whether it is set. Never on a loop."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Return `time.monotonic_ns()`."""
        return time.monotonic_ns()

    def epoch_s(self) -> float:
        """Return wall time in epoch seconds."""
        return time.time_ns() / NS_PER_S

    def wait(self, event: threading.Event, timeout_ns: int) -> bool:
        """Wait for `event`, really."""
        return event.wait(max(timeout_ns, 0) / NS_PER_S)


class ManualClock:
    """A clock that moves only when told to, for tests and replays."""

    def __init__(self, start_ns: int = 0, epoch_s: float = 1_700_000_000.0) -> None:
        self._now_ns = start_ns
        self._epoch_s = epoch_s

    def now_ns(self) -> int:
        """Return the time that was last set."""
        return self._now_ns

    def epoch_s(self) -> float:
        """Return wall time that moves with `advance`."""
        return self._epoch_s + self._now_ns / NS_PER_S

    def advance(self, delta_ns: int) -> None:
        """Move the clock forward by `delta_ns`."""
        self._now_ns += delta_ns

    def wait(self, event: threading.Event, timeout_ns: int) -> bool:
        """Move forward by `timeout_ns` at once unless `event` is set already."""
        if not event.is_set():
            self.advance(max(timeout_ns, 0))
        return event.is_set()
