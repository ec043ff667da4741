"""The One Euro filter: still when a signal rests, quick when it moves.

Casiez, Roussel, Vogel 2012, "1 Euro Filter: A Simple Speed-based Low-pass Filter for Noisy Input in
Interactive Systems", CHI 2012: a low pass whose cut-off rises with the (low-passed) speed,
cutoff = min_cutoff + beta |speed|, alpha = 1 / (1 + 1 / (2 pi cutoff dt)).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPEED_CUTOFF_HZ: Final = 3.0


class OneEuroFilter:
    """Smooths a vector, each component by its own speed in `unit`s a second."""

    def __init__(
        self, min_cutoff_hz: float, beta: float, speed_cutoff_hz: float = _SPEED_CUTOFF_HZ
    ) -> None:
        """`beta` is Hz of cut-off gained per unit a second.

        `speed_cutoff_hz` is that of the low pass on the speed itself.
        """
        self._min_cutoff_hz = min_cutoff_hz
        self._beta = beta
        self._speed_cutoff_hz = speed_cutoff_hz
        self._value: NDArray[np.float64] | None = None
        self._speed: NDArray[np.float64] | None = None

    def smooth(self, value: NDArray[np.float64], dt_s: float, unit: float) -> NDArray[np.float64]:
        """Return the smoothed `value`, `dt_s` after the one before; the first comes back as is."""
        if self._value is None or self._speed is None:
            self._value, self._speed = value.copy(), np.zeros_like(value)
            return value.copy()
        # In place where it can be: a mesh has 1434 components, in every frame.
        way = value - self._value
        self._speed += _compute_alpha(self._speed_cutoff_hz, dt_s) * (way / dt_s - self._speed)
        cutoff = np.abs(self._speed)
        cutoff *= self._beta / unit
        cutoff += self._min_cutoff_hz
        way *= _compute_alpha(cutoff, dt_s)
        self._value += way
        return self._value.copy()

    def reset(self) -> None:
        """Forget the past: the next value is the first."""
        self._value = self._speed = None


@overload
def _compute_alpha(cutoff_hz: float, dt_s: float) -> float: ...
@overload
def _compute_alpha(cutoff_hz: NDArray[np.float64], dt_s: float) -> NDArray[np.float64]: ...
def _compute_alpha(
    cutoff_hz: float | NDArray[np.float64], dt_s: float
) -> float | NDArray[np.float64]:
    """Return 1 / (1 + 1 / (2 pi cutoff dt))."""
    return cutoff_hz / (cutoff_hz + 1.0 / (2.0 * math.pi * dt_s))
