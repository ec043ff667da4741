"""Time as an argument: ints in nanoseconds, monotonic; the wall clock only for logs and tokens."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000


class Condition(Protocol):
    """What a job's threads wait on: a `threading.Condition`, or one of a clock that is not real."""

    def __enter__(self) -> bool:
        """Take the lock."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Give the lock back."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Let go of the lock until notified; False after `timeout` seconds."""
        ...

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> object:
        """Wait until `predicate` holds, at most `timeout` seconds; return what it said last."""
        ...

    def notify_all(self) -> None:
        """Wake all that wait."""
        ...


class Clock(Protocol):
    """What the rest of livefuse knows of time.

    Stages wait only by `wait` and by conditions made here, and say by `charge` when a piece of work
    is done: so a clock that is not real can run the same threads, one at a time, in its own time.
    """

    def now_ns(self) -> int:
        """Return monotonic time in nanoseconds."""
        ...

    def epoch_s(self) -> float:
        """Return wall time in seconds since 1970, for logs and tokens only."""
        ...

    def wait(self, event: threading.Event, timeout_ns: int) -> bool:
        """Wait for `event` at most `timeout_ns`; return whether it is set. Never on a loop."""
        ...

    def create_condition(self) -> Condition:
        """Return what a buffer between two stages waits on."""
        ...

    def charge(self, work: str) -> None:
        """Take note that the calling thread has done `work`; time that is real has passed already.

        A clock that is not real lets pass what the work is said to cost.
        """
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

    def create_condition(self) -> Condition:
        """Return a `threading.Condition`."""
        return threading.Condition()

    def charge(self, work: str) -> None:
        """Do nothing: the time has passed."""


class ManualClock:
    """A clock that moves only when told to, for tests; replays have virtual/."""

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

    def create_condition(self) -> Condition:
        """Return a `threading.Condition`: whoever waits on it waits really."""
        return threading.Condition()

    def charge(self, work: str) -> None:
        """Do nothing: work takes no time here."""
