"""Let packets go at the speed of their time stamps: a file becomes a live stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.timeline import to_ticks

if TYPE_CHECKING:
    import threading

    from livefuse.clock import Clock
    from livefuse.ingest.ratio import Ratio

# Later than that it has been made to wait, and goes on at its own speed: a burst would be dropped.
_MAX_LATE_NS: Final = NS_PER_S // 5
_MAX_AHEAD_NS: Final = 10 * NS_PER_S
# What never ends sends its stills too: a larger step is another clock (C41).
_JUMP_NS: Final = NS_PER_S // 4
_JUMP_STEPS: Final = 8
# A file may hold sound and pictures in pieces: what comes second has been due for that long.
_MAX_APART_NS: Final = 3 * NS_PER_S


class Pacer:
    """Remembers which moment stands for which stamp; a break in the stamps starts it anew."""

    def __init__(
        self, clock: Clock, stopping: threading.Event, *, is_endless: bool = False
    ) -> None:
        """`is_endless`: a live stream in pieces, whose stamps jump where it was put together."""
        self._clock = clock
        self._stopping = stopping
        self._start_ns: int | None = None
        self._is_endless = is_endless
        self._furthest_ns = self._step_ns = 0

    def wait_for(self, stamp: int | None, time_base: Ratio | None) -> int:
        """Wait until `stamp` is due, or `stopping`; return the time then, in ns."""
        now = self._clock.now_ns()
        if stamp is None or not time_base:
            return now
        at_ns = to_ticks(stamp, time_base) * NS_PER_S // TIME_BASE_HZ
        if self._start_ns is None:
            self._start_ns, self._furthest_ns = now - at_ns, at_ns
        elif 0 < self._furthest_ns - at_ns <= _MAX_APART_NS:
            return now
        has_jumped = self._is_endless and self._step_to(at_ns)
        self._furthest_ns = at_ns
        ahead = self._start_ns + at_ns - now
        if has_jumped or not -_MAX_LATE_NS <= ahead <= _MAX_AHEAD_NS:
            self._start_ns, ahead = now - at_ns, 0
        if ahead > 0:
            self._clock.wait(self._stopping, ahead)
        return self._clock.now_ns()

    def _step_to(self, at_ns: int) -> bool:
        """Note how far the next stamp lies ahead; return whether that is a jump."""
        step_ns = at_ns - self._furthest_ns
        has_jumped = step_ns > max(_JUMP_NS, _JUMP_STEPS * self._step_ns)
        self._step_ns = max(step_ns, 0)
        return has_jumped
