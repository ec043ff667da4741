"""Decoding times that strictly increase for each stream, in the unit a container counts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livefuse.packet import Kind


class Timeline:
    """Moves a time that does not increase to the next free one, whatever comes. One thread."""

    def __init__(self, ticks_per_unit: int) -> None:
        self._ticks_per_unit = ticks_per_unit
        self._last: dict[Kind, int] = {"video": -1, "audio": -1}

    def place(self, kind: Kind, dts: int) -> int | None:
        """Return `dts` (1/90000 s) in units, or None when it lies before the line's start."""
        if dts < 0:
            return None
        placed = max(dts // self._ticks_per_unit, self._last[kind] + 1)
        self._last[kind] = placed
        return placed
