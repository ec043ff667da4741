"""Which pictures may be seen after a loss, and when a decoder or a connection is given up. Pure.

FFmpeg marks the picture that was hit, not those that refer to it, and gives them all out (H.264).
So from the first sign of damage on nothing is let through until a whole keyframe: the last good
picture stays (case C44). Signs: a packet or a picture that is marked, an error of the decoder, a
picture of H.264 missing by its number (nal.py), packets that we dropped. Cannot be seen: HEVC that
was hit inside a slice and came by RTP over UDP (MPEG-TS marks it); and, of H.264 by RTP over UDP,
one hole in 80 (CABAC) to one in 12 (CAVLC), after which the rest of the picture still parses.
"""

from __future__ import annotations

from typing import Final, Literal

from livefuse.clock import NS_PER_S

SHORTEST_DISTRUST_NS: Final = 2 * NS_PER_S
"""How long after the last sign of damage a keyframe is waited for; longer if they come seldom."""
LONGEST_DISTRUST_NS: Final = 10 * NS_PER_S
"""After so long without any keyframe, whole or not, a picture without a mark of its own is shown:
some sources send none."""
_KEYFRAME_SHARE: Final = 1.5
_MAX_SUSPECTS: Final = 64

ERROR_BUDGET: Final = 30
"""Errors, each picture making good for half a one, that a decoder may have."""
MAX_RENEWALS: Final = 3
_GOOD_RUN: Final = 60


class Trust:
    """Decides for each picture of one connection. Times are monotonic ns."""

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._sign_ns = 0
        self._last_key_ns: int | None = None
        self._key_interval_ns = 0
        self._suspects: dict[int | None, None] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether pictures are held back."""
        return self._since_ns is not None

    def distrust(self, now_ns: int) -> None:
        """Take a sign of damage: hold back until the next whole keyframe."""
        if self._since_ns is None:
            self._since_ns = now_ns
        self._sign_ns = now_ns

    def suspect(self, pts: int | None, now_ns: int) -> None:
        """Take that the packet of `pts` is damaged itself: not even as a keyframe is it whole."""
        if len(self._suspects) >= _MAX_SUSPECTS:
            self._suspects.pop(next(iter(self._suspects)))
        self._suspects[pts] = None
        self.distrust(now_ns)

    def admits(self, pts: int | None, now_ns: int, *, is_key: bool, is_corrupt: bool) -> bool:
        """Say whether a decoded picture may be seen."""
        is_hit = is_corrupt or pts in self._suspects
        self._suspects.pop(pts, None)
        if is_hit:
            self.distrust(now_ns)
            if is_key:
                self._since_ns = now_ns
            return False
        if is_key:
            self._note_keyframe(now_ns)
        if self._since_ns is not None and (is_key or self._is_over(self._since_ns, now_ns)):
            self._since_ns = None
        return self._since_ns is None

    def _is_over(self, since_ns: int, now_ns: int) -> bool:
        patience = max(SHORTEST_DISTRUST_NS, int(self._key_interval_ns * _KEYFRAME_SHARE))
        return now_ns >= min(self._sign_ns + patience, since_ns + LONGEST_DISTRUST_NS)

    def _note_keyframe(self, now_ns: int) -> None:
        if self._last_key_ns is not None:
            self._key_interval_ns = min(now_ns - self._last_key_ns, LONGEST_DISTRUST_NS)
        self._last_key_ns = now_ns


class ErrorBudget:
    """Counts what one connection's decoder fails at, and says what to do about it."""

    def __init__(self) -> None:
        self._level = 0.0
        self._renewals = 0
        self._good = 0

    def note_picture(self) -> None:
        """Take that a picture was decoded."""
        self._level = max(self._level - 0.5, 0.0)
        self._good += 1
        if self._good >= _GOOD_RUN:
            self._renewals = 0

    def note_error(self) -> Literal["skip", "renew", "reopen"]:
        """Take an error: go on, make a new decoder, or give the connection up."""
        self._good = 0
        self._level += 1
        if self._level <= ERROR_BUDGET:
            return "skip"
        self._level = 0.0
        self._renewals += 1
        return "renew" if self._renewals <= MAX_RENEWALS else "reopen"
