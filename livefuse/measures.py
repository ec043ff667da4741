"""Times and rates, in memory that is fixed whatever a job's age.

Distributions are log-spaced histograms; their error is under 2 %.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from livefuse.clock import Clock

_LOWEST_MS: Final = 0.01
_RATIO: Final = 1.02
_LOG_RATIO: Final = math.log(_RATIO)
_BUCKETS: Final = 900  # 0.01 ms x 1.02^900: over nine minutes
_RECENT: Final = 600


class Percentiles(msgspec.Struct, frozen=True):
    """p50, p95 and p99 in ms, and how many samples they stand for."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    count: int


class Distribution:
    """Times in ms: all in a histogram, the last 600 as they are. One writer, many readers."""

    def __init__(self) -> None:
        self._buckets = [0] * (_BUCKETS + 1)
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self.count = 0
        self.sum_ms = 0.0

    def add(self, value_ms: float) -> None:
        """Take a sample."""
        index = 0
        if value_ms > _LOWEST_MS:
            index = min(int(math.log(value_ms / _LOWEST_MS) / _LOG_RATIO) + 1, _BUCKETS)
        self._buckets[index] += 1
        self._recent.append(value_ms)
        self.count += 1
        self.sum_ms += value_ms

    def overall(self) -> Percentiles:
        """Return the percentiles of everything since the start."""
        p50, p95, p99 = (self._quantile(q) for q in (0.5, 0.95, 0.99))
        return Percentiles(p50, p95, p99, self.count)

    def recent(self) -> Percentiles:
        """Return the percentiles of the last 600 samples."""
        values = sorted(self._recent.copy())
        if not values:
            return Percentiles(0.0, 0.0, 0.0, 0)
        last = len(values) - 1
        p50, p95, p99 = (round(values[round(q * last)], 3) for q in (0.5, 0.95, 0.99))
        return Percentiles(p50, p95, p99, len(values))

    def cumulative(self, bounds_ms: tuple[float, ...]) -> list[int]:
        """Return how many samples are at most each bound."""
        counts = []
        for bound in bounds_ms:
            top = int(math.log(bound / _LOWEST_MS) / _LOG_RATIO) + 1
            counts.append(sum(self._buckets[: top + 1]))
        return counts

    def _quantile(self, share: float) -> float:
        wanted, seen = share * self.count, 0
        for index, amount in enumerate(self._buckets):
            seen += amount
            if amount and seen >= wanted:
                return round(_LOWEST_MS * math.exp(_LOG_RATIO * max(index - 0.5, 0.0)), 3)
        return 0.0


class Rate:
    """Events a second over the last two seconds."""

    def __init__(self, clock: Clock, window_ns: int = 2_000_000_000) -> None:
        self._clock = clock
        self._window_ns = window_ns
        self._times: deque[int] = deque(maxlen=512)

    def add(self) -> None:
        """Count one event now."""
        self._times.append(self._clock.now_ns())

    def per_s(self) -> float:
        """Return the rate; 0 when nothing came within the window."""
        now = self._clock.now_ns()
        times = [t for t in self._times.copy() if now - t <= self._window_ns]
        if len(times) < 2:  # noqa: PLR2004 - a rate needs two points
            return 0.0
        return round((len(times) - 1) * 1e9 / max(now - times[0], 1), 2)
