"""Coded units to one viewer: a bounded queue that starts and goes on at keyframes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.rtc.payload import Payloads

MAX_UNITS: Final[dict[str, int]] = {"video": 15, "audio": 25}
"""Half a second; a viewer that is further behind goes on at the next keyframe."""


class OutgoingTrack(MediaStreamTrack):
    """What one viewer gets of one kind. Only on the peers' loop.

    Nothing is queued before its sender asks for the first time, which is when the connection
    stands; `on_begin` is called then, and whenever it has to start again at a keyframe.
    """

    def __init__(self, kind: Literal["video", "audio"], on_begin: Callable[[], None]) -> None:
        super().__init__()
        self.kind = kind
        self.last_pts: int | None = None
        self.dropped = 0
        self.sent = 0
        self._on_begin = on_begin
        self._units: deque[Payloads] = deque()
        self._has_news = asyncio.Event()
        self._has_begun = False
        self._waits_for_keyframe = True

    def put(self, unit: Payloads, *, is_keyframe: bool) -> None:
        """Take a unit, or drop it when the viewer cannot use it or is too far behind."""
        if not self._has_begun:
            return
        if len(self._units) >= MAX_UNITS[self.kind]:
            self.dropped += len(self._units)
            self._units.clear()
            self._waits_for_keyframe = self.kind == "video"
            if not is_keyframe:
                self._on_begin()
        if self._waits_for_keyframe and not is_keyframe:
            self.dropped += self.sent > 0  # what comes before the first keyframe was never promised
            return
        self._waits_for_keyframe = False
        self._units.append(unit)
        self._has_news.set()

    async def recv(self) -> Payloads:  # type: ignore[override] # its sender has a packer for this
        """Return the next unit, for aiortc's sender."""
        if not self._has_begun:
            self._has_begun = True
            self._on_begin()
        while not self._units:
            if self.readyState != "live":
                raise MediaStreamError
            self._has_news.clear()
            await self._has_news.wait()
        unit = self._units.popleft()
        self.last_pts = unit.pts
        self.sent += 1
        return unit

    def stop(self) -> None:
        """End; whoever waits sees it."""
        super().stop()
        self._has_news.set()
