"""Decoded sound on its line: samples at the place their stamps say, cut into the encoder's units.

Pure. A stamp jitters and a source's clock drifts: the first is let be, the second followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT_SAMPLES: Final = 1024
# A stamp may be off by this much before samples are moved for it.
_TOLERANCE_MS: Final = 40
# A longer hole is left as one: the stream was away.
_MAX_SILENCE_MS: Final = 2000
# On the average of so many packets a stamp that is off by more is no jitter but drift; the line
# follows by so much with each packet, which no ear and no player takes note of.
_AVERAGED: Final = 64
_DRIFT_MS, _STEP_MS = 5, 1


class Unit(NamedTuple):
    """`samples` (channels, 1024) float32, the first of them at `start` on the line."""

    start: int
    samples: NDArray[np.float32]


class SampleLine:
    """One stream's samples. Places are in samples of `rate_hz`; one thread."""

    def __init__(self, rate_hz: int, channels: int) -> None:
        self._rate_hz = rate_hz
        self._pending: NDArray[np.float32] = np.zeros((channels, 0), np.float32)
        self._next: int | None = None  # where the first pending sample stands
        self._drift = 0.0

    def place(self, samples: NDArray[np.float32], at: int) -> list[Unit]:
        """Take `samples` (channels, n) that belong at `at`; return the units that are whole.

        A small hole becomes silence, an overlap is cut.
        """
        if self._next is None:
            self._next = at
        gap = at - (self._next + self._pending.shape[1])
        units: list[Unit] = []
        if abs(gap) * 1000 <= _TOLERANCE_MS * self._rate_hz:
            self._follow_drift(gap)
        elif gap < 0:
            samples = samples[:, -gap:]
        elif gap * 1000 <= _MAX_SILENCE_MS * self._rate_hz:
            self._append(np.zeros((samples.shape[0], gap), np.float32))
        else:
            units = self.flush()
            self._next = at
        self._append(samples)
        return units + self._take_units()

    def flush(self) -> list[Unit]:
        """Return what is left, filled up with silence."""
        missing = -self._pending.shape[1] % UNIT_SAMPLES
        self._append(np.zeros((self._pending.shape[0], missing), np.float32))
        return self._take_units()

    def _follow_drift(self, gap: int) -> None:
        self._drift += (gap - self._drift) / _AVERAGED
        if self._next is None or abs(self._drift) * 1000 <= _DRIFT_MS * self._rate_hz:
            return
        most = _STEP_MS * self._rate_hz // 1000
        step = max(-most, min(most, round(self._drift)))
        self._next += step
        self._drift -= step

    def _append(self, samples: NDArray[np.float32]) -> None:
        self._pending = np.concatenate((self._pending, samples), axis=1)

    def _take_units(self) -> list[Unit]:
        units: list[Unit] = []
        while self._pending.shape[1] >= UNIT_SAMPLES and self._next is not None:
            unit = np.ascontiguousarray(self._pending[:, :UNIT_SAMPLES])
            units.append(Unit(self._next, unit))
            self._pending = self._pending[:, UNIT_SAMPLES:]
            self._next += UNIT_SAMPLES
        return units
