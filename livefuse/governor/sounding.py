"""When to try, on one frame, what has not run for a while: else nobody would know that it fits.

A stage that is off has a cost from when it last ran. What made it dear then may be over (a face
that came close, another program on the graphics card), and the stages that still run need not show
it. So now and then a single frame does the work, unseen; when that is cheap again, two more do, and
the mean is believed if all three were.

A frame that takes long holds up those behind it, so the dearer it was the rarer it is tried: a
fortieth of the time at most, and rarer still after a minute without luck.
"""

from __future__ import annotations

from typing import Final

from livefuse.clock import NS_PER_MS, NS_PER_S

_SERIES: Final = 3
_SPACING: Final = 40  # times what a try cost
_SOONEST_NS: Final = 4 * NS_PER_S
_LATEST_NS: Final = 60 * NS_PER_S
_PATIENCE_NS: Final = 60 * NS_PER_S
_ANSWER_NS: Final = NS_PER_S  # nobody enhances where there is no face


class Sounding:
    """The tries of one stage. One thread."""

    def __init__(self) -> None:
        self._since_ns: int | None = None  # since when it has been off
        self._due_ns = 0
        self._asked_ns: int | None = None
        self._series: list[float] = []
        self._extra = 1

    def start(self, now_ns: int, cost_ms: float) -> None:
        """The stage goes off, and is thought to cost so much."""
        self._since_ns, self._extra = now_ns, 1
        self._asked_ns = None
        self._series.clear()
        self._wait(now_ns, cost_ms)

    def stop(self) -> None:
        """The stage runs again."""
        self._since_ns = self._asked_ns = None

    @property
    def is_off(self) -> bool:
        """Whether the stage is off."""
        return self._since_ns is not None

    @property
    def is_asked(self) -> bool:
        """Whether a try has been asked for and nothing has been heard of it."""
        return self._asked_ns is not None

    def ask(self, now_ns: int) -> bool:
        """Say whether the next frame is to be a try."""
        if self._asked_ns is not None and now_ns - self._asked_ns >= _ANSWER_NS:
            self._asked_ns, self._due_ns = None, now_ns + _SOONEST_NS
            self._series.clear()
        if self._since_ns is None or self._asked_ns is not None or now_ns < self._due_ns:
            return False
        self._asked_ns = now_ns
        return True

    def hear(self, now_ns: int, cost_ms: float, *, fits: bool) -> float | None:
        """Take what a try cost; return what is to be believed of the stage, None: not yet known."""
        self._asked_ns = None
        self._series.append(cost_ms)
        if fits and len(self._series) < _SERIES:
            self._due_ns = now_ns
            return None
        believed_ms = sum(self._series) / len(self._series) if fits else cost_ms
        self._series.clear()
        since_ns = now_ns if self._since_ns is None else self._since_ns
        if not fits and now_ns - since_ns >= _PATIENCE_NS:
            self._extra *= 2
        self._wait(now_ns, believed_ms)
        return believed_ms

    def _wait(self, now_ns: int, cost_ms: float) -> None:
        wait_ns = max(round(_SPACING * cost_ms * NS_PER_MS), _SOONEST_NS) * self._extra
        self._due_ns = now_ns + min(wait_ns, _LATEST_NS)
