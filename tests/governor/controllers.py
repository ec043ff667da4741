"""Other ways to control load, as peers do or textbooks say, to be measured against the governor."""

from __future__ import annotations

from livefuse.config import LADDER
from tests.governor.simulate import COSTS_MS, FRAME_MS

_ENHANCE_OFF = 2
_LOWEST = len(LADDER) - 2  # none of these covers: they would lose the picture for good


class Fixed:
    """No control: everything, always."""

    rung = 0

    def note_frame(self, now_ns, costs_ms, queue_delay_ms):
        """Nothing follows from it."""

    def must_skip_enhance(self, delay_ms):
        """Never."""
        return False


class DecidedOnce(Fixed):
    """Looks at the first two seconds, and leaves enhance out for good when they are slow."""

    def __init__(self):
        self._total = self._frames = 0

    def note_frame(self, now_ns, costs_ms, queue_delay_ms):
        """Decide at the sixtieth frame."""
        self._total += sum(costs_ms.values())
        self._frames += 1
        if self._frames == 60 and self._total / 60 > 0.8 * FRAME_MS:
            self.rung = _ENHANCE_OFF


class Hysteresis(Fixed):
    """Down when the average is above 90 % of the budget, up below 50 %, a second apart."""

    def __init__(self):
        self._average = 0.0
        self._changed_ns = 0

    def note_frame(self, now_ns, costs_ms, queue_delay_ms):
        """One rung at a time."""
        self._average += 0.1 * (sum(costs_ms.values()) - self._average)
        if now_ns - self._changed_ns < 1e9:
            return
        if self._average > 0.9 * FRAME_MS and self.rung < _LOWEST:
            self.rung, self._changed_ns = self.rung + 1, now_ns
        elif self._average < 0.5 * FRAME_MS and self.rung > 0:
            self.rung, self._changed_ns = self.rung - 1, now_ns


class Aimd(Fixed):
    """Additive increase, multiplicative decrease of a quality, on the queue's delay."""

    def __init__(self):
        self._quality = 1.0

    def note_frame(self, now_ns, costs_ms, queue_delay_ms):
        """Halve the quality when frames wait for longer than a frame's time."""
        self._quality = self._quality * 0.5 if queue_delay_ms > FRAME_MS else self._quality + 0.004
        self._quality = min(max(self._quality, 0.0), 1.0)
        self.rung = round((1 - self._quality) * _LOWEST)


class Pid(Fixed):
    """A PID controller that holds the queue's delay at a third of a frame's time."""

    def __init__(self):
        self._sum = self._last = 0.0

    def note_frame(self, now_ns, costs_ms, queue_delay_ms):
        """Error in frames' times; gains by hand."""
        error = queue_delay_ms / FRAME_MS - 0.33
        self._sum = min(max(self._sum + 0.02 * error, 0.0), 1.0)
        drive = self._sum + 0.4 * error + 0.2 * (error - self._last)
        self._last = error
        self.rung = round(min(max(drive, 0.0), 1.0) * _LOWEST)


CONTROLLERS = {
    "none": Fixed,
    "decided once": DecidedOnce,
    "hysteresis": Hysteresis,
    "AIMD": Aimd,
    "PID": Pid,
}
assert set(COSTS_MS) == {"detect", "align", "swap", "enhance"}
