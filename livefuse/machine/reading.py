"""One look at the machine, and what of it presses: values and a pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from livefuse.config import GovernorConfig

_CAPPED_BELOW: Final = (
    0.7  # of the highest limit seen: less than that is no turbo that came and went
)


class Usage(NamedTuple):
    """So many bytes of so many."""

    used: int
    total: int

    @property
    def share(self) -> float:
        """How much of it is used, 0..1."""
        return self.used / self.total if self.total > 0 else 0.0


class Reading(NamedTuple):
    """One look at the machine; None: it does not tell.

    `memory` is what a bounded cgroup (a container) holds and cannot give back, of what it may hold.
    `stalled_share` is the part of the last ten seconds in which somebody waited for memory.
    `over_trip_c` is how far the hottest zone lies above the temperature at which its kernel begins
    to slow it down; `throttled` counts how often cores slowed themselves down since boot.
    `battery_share` is what is left while running on battery. `frequency_khz` is the sum of what
    the cores may run at.
    """

    memory: Usage | None = None
    stalled_share: float | None = None
    gpu_memory: Usage | None = None
    over_trip_c: float | None = None
    throttled: int | None = None
    battery_share: float | None = None
    frequency_khz: int | None = None


def judge(reading: Reading, before: Reading, most_khz: int, config: GovernorConfig) -> set[str]:
    """Return what presses, of `governor.PRESSURES`.

    `before` is the reading a second ago; `most_khz` is the highest `frequency_khz` seen so far: a
    machine that is capped from the start is simply a slow one.
    """
    found: set[str] = set()
    if _exceeds(reading.memory, config.memory_share):
        found.add("memory_constrained")
    if (reading.stalled_share or 0.0) > config.memory_stall_share:
        found.add("memory_constrained")
    if _exceeds(reading.gpu_memory, config.gpu_memory_share):
        found.add("gpu_memory")
    if config.heed_heat and _is_hot(reading, before):
        found.add("thermal")
    if reading.battery_share is not None and reading.battery_share < config.battery_share:
        found.add("low_power")
    if config.heed_heat and (reading.frequency_khz or most_khz) < _CAPPED_BELOW * most_khz:
        found.add("low_power")
    return found


def _exceeds(usage: Usage | None, share: float) -> bool:
    return usage is not None and usage.share > share


def _is_hot(reading: Reading, before: Reading) -> bool:
    if reading.over_trip_c is not None and reading.over_trip_c >= 0.0:
        return True
    if reading.throttled is None or before.throttled is None:
        return False
    return reading.throttled > before.throttled
