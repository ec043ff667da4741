"""How much a sender may send, by what gets lost. Pure.

Delay says more than loss where it can be measured; here it cannot: a pause of this process (a busy
machine, Python's lock) looks like a full network, and senders went down to 250 kb/s for it.
The steps are those of Google congestion control's loss-based part (draft-ietf-rmcat-gcc-02,
section 6): down by half the loss above a tenth, up by 5 % below a fiftieth.
"""

from __future__ import annotations

from typing import Final

MIN_BPS: Final = 150_000
EVERY_MS: Final = 1000.0
_HIGH_LOSS, _LOW_LOSS = 0.10, 0.02
_RISE: Final = 1.05
_MIN_PACKETS: Final = 10


class LossBandwidth:
    """One sender's limit in bit/s; it begins at `max_bps`."""

    def __init__(self, max_bps: int) -> None:
        self._max_bps = max_bps
        self._limit_bps = float(max_bps)
        self._told_ms: float | None = None
        self._received = self._lost = 0

    def update(self, received: int, lost: int, now_ms: float) -> int | None:
        """Take how many packets came and were lost so far; return the limit when it is to be told.

        That is once a second.
        """
        if self._told_ms is not None and now_ms - self._told_ms < EVERY_MS:
            return None
        self._told_ms = now_ms
        came, gone = received - self._received, lost - self._lost
        self._received, self._lost = received, lost
        if came + gone >= _MIN_PACKETS:
            self._adapt(gone / (came + gone))
        return round(self._limit_bps)

    def _adapt(self, loss: float) -> None:
        if loss > _HIGH_LOSS:
            self._limit_bps *= 1 - 0.5 * loss
        elif loss < _LOW_LOSS:
            self._limit_bps *= _RISE
        self._limit_bps = min(max(self._limit_bps, MIN_BPS), self._max_bps)
