"""Sound and pictures of one sender on one line of 1/90000 s. Pure.

RTP time stamps of two streams start at random; sender reports (RFC 3550 section 6.4.1) say which
instant of the sender's clock each belongs to. Until both have come, arrival has to do. Browsers
report to the millisecond; others say when they sent, which jitters: the middle of some reports
counts then, and the sound is moved again only by what an ear could notice.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

Kind = Literal["video", "audio"]

LINE_HZ: Final = 90_000
_NS_PER_S: Final = 1_000_000_000
_WRAP: Final = 1 << 32
_FIRST_SHIFT: Final = LINE_HZ // 100
_LATER_SHIFT: Final = LINE_HZ // 25
"""40 ms: sound that is off by less is in step (ITU-R BT.1359: 45 ms early to 125 ms late)."""
_MIN_REPORTS: Final = 3
_MAX_SHIFT: Final = 5 * LINE_HZ
"""More than 5 s between sound and picture is a sender whose reports are nonsense."""


@dataclass(slots=True)
class _Stream:
    rate_hz: int
    last: int | None = None
    offset: int | None = None  # from the stream's own ticks to the line
    reported: int | None = None  # from the stream's own ticks to the sender's clock, in ticks

    def to_ticks(self, timestamp: int) -> int:
        """Return an RTP time stamp, unwrapped, in 1/90000 s."""
        last = timestamp if self.last is None else self.last
        step = (timestamp - last + _WRAP // 2) % _WRAP - _WRAP // 2
        self.last = last + step
        return self.last * LINE_HZ // self.rate_hz


class SenderLine:
    """One sender's line. Used from one thread."""

    def __init__(self, rates_hz: dict[Kind, int]) -> None:
        self._streams = {kind: _Stream(rate) for kind, rate in rates_hz.items()}
        self._leads: deque[int] = deque(maxlen=5)  # of the sound's ticks before the pictures'
        self._is_aligned = False

    def place(self, kind: Kind, timestamp: int, arrival_ns: int) -> int:
        """Return where a unit stands on the line, in 1/90000 s."""
        stream = self._streams[kind]
        ticks = stream.to_ticks(timestamp)
        if stream.offset is None:
            stream.offset = arrival_ns * LINE_HZ // _NS_PER_S - ticks
            self._align()
        return ticks + stream.offset

    def note_report(self, kind: Kind, ntp_timestamp: int, timestamp: int) -> None:
        """Take a sender report: its 64-bit NTP time and the RTP time stamp of that instant."""
        stream = self._streams[kind]
        if not ntp_timestamp or stream.last is None:
            return
        before = stream.last
        ticks = stream.to_ticks(timestamp)
        stream.last = before  # a report is no unit
        stream.reported = (ntp_timestamp * LINE_HZ >> 32) - ticks
        video, audio = self._streams["video"].reported, self._streams["audio"].reported
        if video is not None and audio is not None:
            self._leads.append(audio - video)
            self._align()

    def _align(self) -> None:
        """Move the sound to where the reports say that it belongs; pictures stay where they are."""
        video, audio = self._streams["video"].offset, self._streams["audio"].offset
        if video is None or audio is None or not self._leads:
            return
        if self._is_aligned and len(self._leads) < _MIN_REPORTS:
            return
        wanted = video + round(median(self._leads))
        least = _LATER_SHIFT if self._is_aligned else _FIRST_SHIFT
        self._is_aligned = True
        if least < abs(wanted - audio) < _MAX_SHIFT:
            self._streams["audio"].offset = wanted
