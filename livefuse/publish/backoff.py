"""How long to wait before the next try: doubling, with jitter, for ever."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_DOUBLINGS: Final = 30


class Backoff:
    """Waits from `min_ms` to `max_ms`; jitter keeps many clients from coming back at once."""

    def __init__(self, min_ms: int, max_ms: int, draw: Callable[[], float] = random.random) -> None:
        self._min_ms = min_ms
        self._max_ms = max(max_ms, min_ms)
        self._draw = draw
        self._failures = 0

    def next_ms(self) -> int:
        """Return the next wait: between half of the doubled wait and all of it."""
        whole = min(self._min_ms << min(self._failures, _MAX_DOUBLINGS), self._max_ms)
        self._failures += 1
        return round(whole * (1 + self._draw()) / 2)

    def reset(self) -> None:
        """Begin again at the least: the last try held."""
        self._failures = 0
