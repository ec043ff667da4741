"""Whether there is room for one job more, by what those that run were measured to use. Pure.

A job needs what jobs with its operations use here; before one has run, a figure that was measured
elsewhere. Its own share counts for as long as it is too young to be measured. What works on files
takes what is left, so it counts as no more than it needs at least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

YOUNG_S: Final = 10.0
_FILE_CORES: Final = 0.5
_MEMORY_BYTES: Final = 350 << 20
_KEPT_BYTES: Final = 256 << 20
"""Of memory, for the rest of the machine."""
# Cores that 720p30 takes here (scripts/bench, two slow cores): decoded and encoded, and each step.
_BASE_CORES: Final = 0.3
_STEP_CORES: Final = {
    "detect": 0.08,
    "align": 0.12,
    "identify": 0.03,
    "background": 0.2,
    "swap": 0.3,
    "puppet": 0.3,
    "beautify": 0.2,
    "enhance": 0.15,
    "blur": 0.03,
}

Kind = tuple[str, ...]


class Demand(NamedTuple):
    """What a job needs."""

    cores: float
    memory_bytes: int


class Room(NamedTuple):
    """What there is. `encodes`: how many streams may be encoded at a time; 0: no bound."""

    cores: float
    free_memory_bytes: int | None
    encodes: int = 0


class Free(NamedTuple):
    """What is left for one job more; `memory_bytes` None where the machine does not tell."""

    cores: float
    memory_bytes: int | None


class Running(NamedTuple):
    """A job that runs: since when, and what it was measured to use, None while it was not."""

    kind: Kind
    age_s: float
    is_for_files: bool
    measured: Demand | None


def estimate_demand(kind: Kind, known: Mapping[Kind, Demand], *, is_for_files: bool) -> Demand:
    """Return what a job with the operations `kind` needs; `known` is what such jobs have used."""
    if is_for_files:
        return Demand(_FILE_CORES, _MEMORY_BYTES)
    if kind in known:
        return known[kind]
    cores = _BASE_CORES + sum(_STEP_CORES.get(name, 0.0) for name in kind)
    return Demand(round(cores, 2), _MEMORY_BYTES)


def add_up(running: Iterable[Running], known: Mapping[Kind, Demand]) -> Demand:
    """Return what all that run use; the memory of those that are measured is taken already."""
    cores, memory_bytes = 0.0, 0
    for one in running:
        guess = estimate_demand(one.kind, known, is_for_files=one.is_for_files)
        is_young = one.measured is None or one.age_s < YOUNG_S
        used = one.measured.cores if one.measured is not None else 0.0
        if one.is_for_files:
            cores += guess.cores
        else:
            cores += max(used, guess.cores) if is_young else used
        memory_bytes += guess.memory_bytes if is_young else 0
    return Demand(cores, memory_bytes)


def find_free(room: Room, used: Demand) -> Free:
    """Return what is left of `room` when `used` is taken (`add_up`)."""
    cores = max(room.cores - used.cores, 0.0)
    if room.free_memory_bytes is None:
        return Free(cores, None)
    return Free(cores, max(room.free_memory_bytes - used.memory_bytes - _KEPT_BYTES, 0))


def find_shortage(
    demand: Demand, room: Room, running: list[Running], known: Mapping[Kind, Demand]
) -> str:
    """Return what there is too little of for `demand`, in words; nothing when it fits.

    The first job always fits: a machine that is too small for it sees it spare by itself.
    """
    if not running:
        return ""
    free = find_free(room, add_up(running, known))
    if room.encodes and len(running) >= room.encodes:
        return f"{len(running)} of {room.encodes} streams are encoded already"
    if demand.cores > free.cores:
        return (
            f"it needs about {demand.cores:.1f} cores and {free.cores:.1f} of {room.cores:.1f}"
            " are free"
        )
    if free.memory_bytes is not None and demand.memory_bytes > free.memory_bytes:
        return (
            f"it needs about {demand.memory_bytes >> 20} MB of memory and"
            f" {free.memory_bytes >> 20} MB are free"
        )
    return ""
