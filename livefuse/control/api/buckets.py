"""Token buckets: how often each of many may come. Pure; the clock is an argument."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

_MOST_KNOWN: Final = 4096


class _Level(NamedTuple):
    tokens: float
    at_s: float


class Buckets:
    """One bucket for each who comes: filled at `rate_per_s`, holding `burst`. From one thread.

    At most 4096 are known, those who came last: who is forgotten begins with a full bucket.
    """

    def __init__(self, rate_per_s: float, burst: float) -> None:
        """Take the rate; 0 sets no limit."""
        self._rate_per_s = rate_per_s
        self._burst = max(burst, 1.0)
        self._levels: OrderedDict[Hashable, _Level] = OrderedDict()

    def take(self, who: Hashable, now_s: float) -> float:
        """Take one token; return 0, or for how many seconds there is none."""
        if not self._rate_per_s:
            return 0.0
        tokens = self._read(who, now_s)
        is_there = tokens >= 1.0
        self._levels[who] = _Level(tokens - 1.0 if is_there else tokens, now_s)
        self._levels.move_to_end(who)
        if len(self._levels) > _MOST_KNOWN:
            self._levels.popitem(last=False)
        return 0.0 if is_there else (1.0 - tokens) / self._rate_per_s

    def _read(self, who: Hashable, now_s: float) -> float:
        level = self._levels.get(who)
        if level is None:
            return self._burst
        return min(level.tokens + (now_s - level.at_s) * self._rate_per_s, self._burst)
