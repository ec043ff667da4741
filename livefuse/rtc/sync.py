"""Sound and pictures of one sender on one line of 1/90000 s. Pure.

RTP time stamps of two streams start at random; sender reports (RFC 3550 section 6.4.1) say which
instant of the sender's clock each belongs to. Until both have come, arrival has to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["video", "audio"]

LINE_HZ: Final = 90_000
_NS_PER_S: Final = 1_000_000_000
_WRAP: Final = 1 << 32
_MIN_SHIFT: Final = LINE_HZ // 100
"""10 ms: less is the reports' own jitter, and nobody hears it."""
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
        self._align()

    def _align(self) -> None:
        """Move the sound to where the reports say that it belongs; pictures stay where they are."""
        video, audio = self._streams.get("video"), self._streams.get("audio")
        if video is None or audio is None:
            return
        offsets = (video.offset, audio.offset, video.reported, audio.reported)
        if None in offsets:
            return
        wanted = (video.offset or 0) + (audio.reported or 0) - (video.reported or 0)
        if _MIN_SHIFT < abs(wanted - (audio.offset or 0)) < _MAX_SHIFT:
            audio.offset = wanted
