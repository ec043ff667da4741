"""A bounded queue that a decoder can follow: it starts at a keyframe, and skips to one."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class GopQueue(Generic[T]):
    """Holds items up to a total weight. Not thread-safe: its owner has the lock.

    Nothing is taken before a keyframe. When the weight would be exceeded everything that waits
    is dropped, and all that follows until the next keyframe: the reader is then at the live edge.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[tuple[T, int]] = deque()
        self._weight = 0
        self.waits_for_keyframe = True
        self.dropped = 0

    def put(self, item: T, *, weight: int = 1, is_keyframe: bool) -> bool:
        """Take `item` unless it cannot be used; return whether it was taken."""
        if self.waits_for_keyframe and not is_keyframe:
            self.dropped += 1
            return False
        if self._items and self._weight + weight > self._limit:
            self.skip()
            if not is_keyframe:
                self.dropped += 1
                return False
        self.waits_for_keyframe = False
        self._items.append((item, weight))
        self._weight += weight
        return True

    def get(self) -> T | None:
        """Return the oldest item, or None."""
        if not self._items:
            return None
        item, weight = self._items.popleft()
        self._weight -= weight
        return item

    def skip(self) -> None:
        """Drop what waits, counted, and start again at the next keyframe."""
        self.dropped += len(self._items)
        self._items.clear()
        self._weight = 0
        self.waits_for_keyframe = True

    def is_full(self) -> bool:
        """Return whether one more item of weight 1 would be too many."""
        return bool(self._items) and self._weight + 1 > self._limit

    def __len__(self) -> int:
        return len(self._items)
