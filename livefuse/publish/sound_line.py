"""The line that sound goes out on: nothing behind what was sent, silence for what was lost. Pure.

Lost packets of a stream that goes on leave a hole of whole units; it is filled, so that sound lasts
as long as the time it stands for (case C53). Sound that stays away is filled up to the pictures,
whose line goes on with the time whatever happens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from livefuse.frame import TIME_BASE_HZ

if TYPE_CHECKING:
    from livefuse.packet import Packet

_MAX_HOLE: Final = 2 * TIME_BASE_HZ
"""A longer one at once is a stream that was away, or a clock that was set; not packets lost."""

_MAX_JUMP: Final = 10 * TIME_BASE_HZ
# What is missing is made up for this much faster than time passes, in pieces that no output's queue
# is too short for.
_CATCH_UP: Final = 4
_MAX_PIECE: Final = TIME_BASE_HZ // 2
# Silence stays this far behind the pictures: sound that comes back may come after its picture.
_MARGIN: Final = TIME_BASE_HZ // 4
# A source whose sound stays this far behind its pictures is waited for longer than was asked.
_MAX_PATIENCE: Final = 4 * TIME_BASE_HZ
_LATE_IN_A_ROW: Final = 50


class SoundLine:
    """One job's sound in order. All times in 1/90000 s; one thread.

    Args:
        silence: one unit of silence in the stream's codec, None when it cannot be made.
        patience: how far pictures may be ahead before silence takes the place of sound.
    """

    def __init__(self, silence: Packet | None, patience: int) -> None:
        self._silence = silence
        self._unit = silence.duration if silence is not None else 0
        self._patience = patience
        self._is_silent = False
        self._picture: int | None = None
        self._end: int | None = None  # where the sound that was sent ends
        self._late_in_a_row = 0
        self.late_packets = self.silent_packets = 0

    def place(self, packet: Packet) -> list[Packet]:
        """Return what to send for `packet`: it alone, after silence, or nothing when it is late."""
        end = self._end
        if end is not None and packet.dts < end - packet.duration:
            self._note_late()
            return []
        hole = packet.dts - end if end is not None else 0
        filled = self._fill((hole + self._unit // 2) // self._unit) if self._is_hole(hole) else []
        self._end = packet.dts + (packet.duration or self._unit)
        self._is_silent = False
        self._late_in_a_row = 0
        return [*filled, packet]

    def follow(self, picture: int) -> list[Packet]:
        """Return the silence that is due when pictures have come as far as `picture`.

        It comes in pieces, each up to four times as long as the step of the pictures.
        """
        step = picture - self._picture if self._picture is not None else _MAX_PIECE
        self._picture = picture
        if self._end is None:
            self._end = picture  # announced, and not heard of yet
        ahead = picture - self._end
        if ahead > _MAX_JUMP:
            self._end, ahead = picture - self._patience, self._patience
        margin = min(_MARGIN, self._patience // 2)
        least = margin + self._unit if self._is_silent else self._patience
        if self._silence is None or ahead < least:
            return []
        self._is_silent = True
        piece = min(max(_CATCH_UP * step, self._unit), _MAX_PIECE)
        return self._fill(min(ahead - margin, piece) // self._unit)

    def _note_late(self) -> None:
        """Sound that goes on and is always late is not away: silence must not take its place."""
        self.late_packets += 1
        self._late_in_a_row += 1
        if self._late_in_a_row >= _LATE_IN_A_ROW:
            self._late_in_a_row = 0
            self._patience = max(min(2 * self._patience, _MAX_PATIENCE), self._patience)
            self._is_silent = False

    def _is_hole(self, length: int) -> bool:
        return self._unit > 0 and self._unit // 2 < length <= _MAX_HOLE

    def _fill(self, units: int) -> list[Packet]:
        filled: list[Packet] = []
        for _ in range(units):
            if self._silence is None or self._end is None:
                break
            filled.append(replace(self._silence, pts=self._end, dts=self._end))
            self._end += self._unit
        self.silent_packets += len(filled)
        return filled
