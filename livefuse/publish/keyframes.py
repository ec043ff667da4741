"""Wishes for a keyframe, joined and spaced out: many may ask, one keyframe serves them all."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock

_SPACING_NS: Final = 500 * NS_PER_MS


class KeyframeRequests:
    """Passes a wish on at once, or when 500 ms have passed since the last. Any thread."""

    def __init__(self, clock: Clock, force_keyframe: Callable[[], None]) -> None:
        self._clock = clock
        self._force_keyframe = force_keyframe
        self._lock = threading.Lock()
        self._last_ns: int | None = None
        self._is_wanted = False

    def request(self) -> None:
        """Ask for a keyframe."""
        with self._lock:
            self._is_wanted = True
        self.serve()

    def serve(self) -> None:
        """Pass on a wish whose time has come; called with every packet."""
        with self._lock:
            now = self._clock.now_ns()
            is_early = self._last_ns is not None and now - self._last_ns < _SPACING_NS
            if not self._is_wanted or is_early:
                return
            self._is_wanted = False
            self._last_ns = now
        self._force_keyframe()

    def note_keyframe(self) -> None:
        """A keyframe has just gone to all outputs: whoever asked has it."""
        with self._lock:
            self._is_wanted = False
