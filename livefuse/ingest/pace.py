"""Whether a live source's line keeps pace with real time, and by how much to move it. Pure.

All times in 1/90000 s. A source that has stalled may go on where it had stopped, as if no time had
passed: its line then lies behind for ever, while the output has gone on with the time. It is moved
to where it was on the clock. Should the source catch up with the time later, sending faster than it
passes, what it was moved by is taken back step by step, so that a line never runs ahead either.
"""

from __future__ import annotations

from typing import Final

from livefuse.frame import TIME_BASE_HZ

LATE: Final = TIME_BASE_HZ * 9 // 10
"""A little below the second after which the last picture is held (hold.after_ms)."""
PATIENCE: Final = TIME_BASE_HZ // 2
"""So long a source may need to catch up by itself."""
_NEAR: Final = TIME_BASE_HZ // 4
_FOLLOW, _FOLLOW_SLOWLY = 8, 10


class Usual:
    """How far stamps are ahead of their arrival at best, lately: what delays them is no line."""

    def __init__(self) -> None:
        self.lead: int | None = None

    def note(self, place: int, now: int) -> None:
        """Take note of a stamp; a clock that is a little slow is followed, a stall is not."""
        lead = place - now
        if self.lead is None or lead >= self.lead:
            self.lead = lead
        else:
            near = self.lead - lead < _NEAR
            self.lead += (lead - self.lead) >> (_FOLLOW if near else _FOLLOW_SLOWLY)

    def fits(self, place: int, now: int, tolerance: int) -> bool:
        """Say whether a stamp of now would be as far ahead as usual."""
        return self.lead is not None and abs(place - now - self.lead) <= tolerance


class Pace:
    """One connection's. `moved` is by how much its line has been moved in all.

    As long as that is not 0 what is usual is to be left as it was: it is what the line is held to.
    """

    def __init__(self) -> None:
        self.moved = 0
        self._late_since: int | None = None

    def note(self, usual: Usual, place: int, own: int, now: int) -> int:
        """Return by how much to move the line after a picture was given `place` at `now`.

        `own` is where it would lie if no order were to be kept. The answer is negative while the
        source catches up: as far as it comes before its time.
        """
        lead = usual.lead
        if lead is None:
            return 0
        late = lead - (place - now)
        if late <= LATE:
            self._late_since = None
            early = own - now - lead
            return -min(early, self.moved) if early > 0 and self.moved > 0 else 0
        if self._late_since is None:
            self._late_since = now
        if now - self._late_since < PATIENCE:
            return 0
        self._late_since = None
        return late
