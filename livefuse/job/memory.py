"""A cap on what the process takes of the machine's memory, so that the machine survives a leak.

Near the cap the governor hears of it; past it the pipeline and its networks are made anew, once;
where that does not help for a minute the job ends with a sentence, before the kernel ends others.
"""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING, Final, Literal

from livefuse.clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

Verdict = Literal["enough", "constrained", "over", "lost"]

_NEAR_SHARE: Final = 0.9
_HOPELESS_SHARE: Final = 1.5
_EVERY_NS: Final = NS_PER_S
_GRACE_NS: Final = 5 * NS_PER_S
_MINUTE_NS: Final = 60 * NS_PER_S


class MemoryCap:
    """Says once a second how the memory that is held compares with the cap. One thread."""

    def __init__(self, limit_bytes: int, read_held: Callable[[], int | None]) -> None:
        """`read_held` returns what the process holds now, None where that cannot be told.

        A `limit_bytes` of 0 is no limit.
        """
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._read_held = read_held
        self._looked_ns: int | None = None
        self._over_ns: int | None = None

    @property
    def is_recovering(self) -> bool:
        """Whether it was past the cap a moment ago."""
        return self._over_ns is not None and (self._looked_ns or 0) - self._over_ns < _GRACE_NS

    def look(self, now_ns: int) -> Verdict | None:
        """Return what is to be done at `now_ns`; None: it is not time to look.

        `constrained`: above nine tenths. `over`: above the cap, make the pipeline anew. `lost`:
        that has not helped, it is above it again within a minute; what is let go has five seconds
        to be given back.
        """
        if not self.limit_bytes:
            return None
        if self._looked_ns is not None and now_ns - self._looked_ns < _EVERY_NS:
            return None
        self._looked_ns = now_ns
        self.held_bytes = self._read_held() or 0
        share = self.held_bytes / self.limit_bytes
        if share <= 1.0:
            return "constrained" if share > _NEAR_SHARE else "enough"
        since_ns = None if self._over_ns is None else now_ns - self._over_ns
        if since_ns is None or since_ns > _MINUTE_NS:
            self._over_ns = now_ns
            return "over"
        if since_ns < _GRACE_NS and share < _HOPELESS_SHARE:
            return "constrained"
        return "lost"


def trim_heap() -> None:
    """Give back to the system what was let go of; takes some ten milliseconds."""
    gc.collect()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return  # another C library, which has its own ways
    trim(0)
