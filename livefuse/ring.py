"""The bounded buffer between two stages: the newest win, and every drop has a reason.

`mode="live"` drops the oldest when full; `mode="every_frame"` makes the putter wait instead, so
nothing is lost (files, replays). A larger ring never raised throughput, it only added latency:
two is right.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

from livefuse.clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Condition

T = TypeVar("T")
RingMode = Literal["live", "every_frame"]


class RingStatistics(NamedTuple):
    """A snapshot: counts since the start, and how many items wait now."""

    put: int
    taken: int
    dropped: int
    waiting: int
    capacity: int


class RingClosed(Exception):  # noqa: N818 - a signal of the end, as StopIteration is
    """The ring is closed and, for `take`, empty."""


class Ring(Generic[T]):
    """Bounded and thread-safe. `on_drop(item)` runs in the putter's thread."""

    def __init__(
        self,
        capacity: int,
        *,
        mode: RingMode = "live",
        on_drop: Callable[[T], None] | None = None,
        condition: Condition | None = None,
    ) -> None:
        """`condition` is what takers and putters wait on, when it is not to be a real one."""
        if capacity < 1:
            raise ValueError("a ring holds at least one item")
        self._capacity = capacity
        self._mode = mode
        self._on_drop = on_drop
        self._items: deque[T] = deque()
        self._condition: Condition = condition or threading.Condition()
        self._closed = False
        self._put = self._taken = self._dropped = 0

    def put(self, item: T) -> None:
        """Add `item`; when full drop the oldest (live) or wait for room (every_frame).

        Raises:
            RingClosed: the ring was closed; the item was not taken.
        """
        dropped: list[T] = []
        with self._condition:
            while (
                self._mode == "every_frame"
                and len(self._items) >= self._capacity
                and not self._closed
            ):
                self._condition.wait()
            if self._closed:
                raise RingClosed
            while len(self._items) >= self._capacity:
                dropped.append(self._items.popleft())
                self._dropped += 1
            self._items.append(item)
            self._put += 1
            self._condition.notify_all()
        if self._on_drop is not None:
            for old in dropped:
                self._on_drop(old)

    def take(self) -> T:
        """Return the oldest item, waiting for one.

        Raises:
            RingClosed: closed, and everything has been taken.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._items or self._closed)
            if not self._items:
                raise RingClosed
            self._taken += 1
            item = self._items.popleft()
            self._condition.notify_all()
            return item

    def take_within(self, timeout_ns: int) -> T | None:
        """Return the oldest item, or None when there is none within `timeout_ns`.

        Raises:
            RingClosed: closed, and everything has been taken.
        """
        with self._condition:
            is_over = self._condition.wait_for(
                lambda: self._items or self._closed, timeout_ns / NS_PER_S
            )
            if not is_over:
                return None
        return self.take()

    def close(self, *, discard: bool = False) -> list[T]:
        """End the ring: putters are refused, getters take what is left.

        With `discard` nothing is left: the waiting items are returned for release.
        """
        with self._condition:
            self._closed = True
            left = list(self._items) if discard else []
            if discard:
                self._items.clear()
            self._condition.notify_all()
        return left

    @property
    def is_closed(self) -> bool:
        """Whether no more items are taken in."""
        return self._closed

    def statistics(self) -> RingStatistics:
        """Return a consistent snapshot."""
        with self._condition:
            return RingStatistics(
                self._put, self._taken, self._dropped, len(self._items), self._capacity
            )
