"""RTP packets in any order -> whole units, and which packets to ask for again. Pure.

A unit (a coded picture, or one packet of sound) is whole as soon as its last packet is there: the
marker bit says which that is (RFC 3550 section 5.1, RFC 6184 section 5.1). Nothing waits for the
packet after it. A hole is waited for as long as a retransmission can take, no longer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_WRAP: Final = 1 << 16
_HALF: Final = 1 << 15
CAPACITY: Final = 1024
"""Packets kept behind a hole; a keyframe of 1 MB at most."""
VIDEO_PATIENCE_MS: Final = 200.0
SOUND_PATIENCE_MS: Final = 60.0
RETRY_MS: Final = 40.0
MAX_TRIES: Final = 8
MAX_MISSING: Final = 256


class Piece(NamedTuple):
    """One RTP packet: its RTP time stamp, marker bit and payload without the codec's own header."""

    timestamp: int
    is_last: bool
    data: bytes


class Unit(NamedTuple):
    """A coded unit. `has_gap`: something before it is lost for good."""

    data: bytes
    timestamp: int
    has_gap: bool


class Unwrapper:
    """16-bit sequence numbers -> ints that never wrap."""

    def __init__(self) -> None:
        self._highest: int | None = None

    def unwrap(self, sequence: int) -> int:
        """Return the number nearest to the highest one so far that ends in these 16 bits."""
        if self._highest is None:
            self._highest = sequence + _WRAP
        step = (sequence - self._highest + _HALF) % _WRAP - _HALF
        number = self._highest + step
        self._highest = max(self._highest, number)
        return number


class UnitBuffer:
    """Puts the packets of one stream in order and gives out whole units."""

    def __init__(self, *, is_video: bool) -> None:
        self._is_video = is_video
        self._patience_ms = VIDEO_PATIENCE_MS if is_video else SOUND_PATIENCE_MS
        self._unwrapper = Unwrapper()
        self._pieces: dict[int, Piece] = {}
        self._next: int | None = None
        self._hole_since_ms: float | None = None
        self._has_gap = False

    def add(self, sequence: int, piece: Piece, now_ms: float) -> list[Unit]:
        """Take a packet; return the units that are whole now, in order."""
        number = self._unwrapper.unwrap(sequence)
        if self._next is None:
            self._next = number
        if number < self._next:
            return []
        self._pieces[number] = piece
        units = self._take_whole(self._next)
        if units:
            self._hole_since_ms = None
        if self._pieces and self._is_hopeless(self._next, now_ms):
            units += self._skip(self._next)
        return units

    def _take_whole(self, start: int) -> list[Unit]:
        units: list[Unit] = []
        end = self._find_end(start)
        while end is not None:
            pieces = [self._pieces.pop(number) for number in range(start, end)]
            units.append(Unit(b"".join(p.data for p in pieces), pieces[0].timestamp, self._has_gap))
            self._has_gap = False
            self._next = start = end
            end = self._find_end(start)
        return units

    def _find_end(self, start: int) -> int | None:
        """Return the number behind the unit that begins at `start`, None while it is not whole."""
        piece = self._pieces.get(start)
        if piece is None or not self._is_video:
            return None if piece is None else start + 1
        number = start
        while True:
            if piece.is_last:
                return number + 1
            number += 1
            following = self._pieces.get(number)
            if following is None:
                return None
            if following.timestamp != piece.timestamp:
                return number  # a sender without marker bits
            piece = following

    def _is_hopeless(self, start: int, now_ms: float) -> bool:
        """Say whether the hole before what is kept has been waited for long enough."""
        newest = max(self._pieces)
        if newest - start + 1 == len(self._pieces):
            self._hole_since_ms = None  # no hole: only the rest of a picture is on its way
            return len(self._pieces) > CAPACITY
        if self._hole_since_ms is None:
            self._hole_since_ms = now_ms
        return now_ms - self._hole_since_ms > self._patience_ms or newest - start > CAPACITY

    def _skip(self, start: int) -> list[Unit]:
        """Give up what is not whole; go on at the first unit whose beginning is sure."""
        self._has_gap = True
        self._hole_since_ms = None
        for number in sorted(self._pieces):
            if number > start and self._is_beginning(number):
                self._next = number
                break
        else:
            self._next = max(self._pieces) + 1
        self._pieces = {n: piece for n, piece in self._pieces.items() if n >= self._next}
        return self._take_whole(self._next)

    def _is_beginning(self, number: int) -> bool:
        if not self._is_video:
            return True
        before = self._pieces.get(number - 1)
        if before is None:
            return False
        return before.is_last or before.timestamp != self._pieces[number].timestamp


class LossTracker:
    """Which packets to ask for again (RFC 4585, generic NACK): each until it comes.

    `received` counts packets, `lost` those that did not come at first.
    """

    def __init__(self) -> None:
        self.received = self.lost = 0
        self._unwrapper = Unwrapper()
        self._highest: int | None = None
        self._asked: dict[int, tuple[float, int]] = {}  # when last, how often

    def note(self, sequence: int, now_ms: float) -> list[int]:
        """Take the number of a packet that came; return the 16-bit numbers to ask for now."""
        number = self._unwrapper.unwrap(sequence)
        self.received += 1
        if self._highest is None or number - self._highest > MAX_MISSING:
            self._asked.clear()
            self._highest = number
            return []
        for missing in range(self._highest + 1, number):
            self._asked[missing] = (0.0, 0)
            self.lost += 1
        self._highest = max(self._highest, number)
        self._asked.pop(number, None)
        return self._list_due(now_ms) if self._asked else []

    def _list_due(self, now_ms: float) -> list[int]:
        due = []
        for number, (last_ms, tries) in list(self._asked.items()):
            if tries >= MAX_TRIES or len(self._asked) > MAX_MISSING:
                del self._asked[number]
            elif not tries or now_ms - last_ms >= RETRY_MS:
                self._asked[number] = (now_ms, tries + 1)
                due.append(number % _WRAP)
        return due
