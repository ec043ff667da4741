"""A live source is opened and read in a thread of its own, which can be left behind.

FFmpeg cannot be interrupted: a name server or a silent peer holds the reader until a time-out. The
ingest does not wait for it. An abandoned reader ends by its own time-outs and closes its source.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.packet import Packet
    from av.stream import Stream

    from livefuse.clock import Clock
    from livefuse.ingest.source import Source

MAX_PACKETS: Final = 1024
_JOIN_S: Final = 0.2


class Item(NamedTuple):
    """A packet, of the pictures or not, when it came (monotonic), how many were lost before it."""

    packet: Packet[Stream]
    is_video: bool
    arrival_ns: int
    dropped_before: int = 0


class ReaderEnded(Exception):  # noqa: N818 - a signal of the end, as StopIteration is
    """Nothing more will come; `cause` is the error that ended it, if one did."""

    def __init__(self, cause: Exception | None) -> None:
        super().__init__()
        self.cause = cause


class Reader:
    """Runs `open_source`, then queues packets. A full queue drops all that waits (live) or blocks.

    A bursty source is paced by its taker, so its reader waits for room instead of dropping.
    """

    def __init__(
        self,
        open_source: Callable[[], Source],
        clock: Clock,
        cancel: Callable[[], None] | None = None,
    ) -> None:
        """Start at once. `cancel` makes a blocked `open_source` or read return, from any thread."""
        self._open_source = open_source
        self._cancel = cancel
        self._clock = clock
        self._condition = threading.Condition()
        self._items: deque[Item] = deque()
        self._source: Source | None = None
        self._has_ended = False
        self._is_closed = False
        self._cause: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="livefuse-reader", daemon=True)
        self._thread.start()

    def wait_opened(self, timeout_s: float) -> Source | None:
        """Return the opened source, or None when it takes longer or the reader was closed.

        Raises:
            ReaderEnded: it could not be opened.
        """
        with self._condition:
            self._condition.wait_for(
                lambda: self._source or self._has_ended or self._is_closed, timeout_s
            )
            if self._source is None and self._has_ended:
                raise ReaderEnded(self._cause)
            return self._source

    def get(self, timeout_s: float) -> Item | None:
        """Return the oldest packet, or None when none came in time or the reader was closed.

        Raises:
            ReaderEnded: the source ended and everything has been taken.
        """
        with self._condition:
            self._condition.wait_for(
                lambda: self._items or self._has_ended or self._is_closed, timeout_s
            )
            if self._is_closed:
                return None
            if self._items:
                item = self._items.popleft()
                if len(self._items) == MAX_PACKETS - 1:
                    self._condition.notify_all()
                return item
            if self._has_ended:
                raise ReaderEnded(self._cause)
            return None

    def close(self) -> None:
        """Let the thread go; it is waited for only a moment."""
        self.interrupt()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def interrupt(self) -> None:
        """Wake whoever waits, from any thread; never waits itself."""
        with self._condition:
            self._is_closed = True
            self._items.clear()
            self._condition.notify_all()
        if self._cancel is not None:
            self._cancel()

    def _run(self) -> None:
        cause: Exception | None = None
        try:
            source = self._open_source()
            try:
                with self._condition:
                    self._source = source
                    self._condition.notify_all()
                self._read(source)
            finally:
                source.close()
        except Exception as error:  # noqa: BLE001 - told to the taker, who knows it or raises it
            cause = error
        with self._condition:
            self._cause, self._has_ended = cause, True
            self._condition.notify_all()

    def _read(self, source: Source) -> None:
        for is_video, packet in source.packets:
            item = Item(packet, is_video, self._clock.now_ns())
            if not self._put(item, waits=source.is_bursty):
                return

    def _put(self, item: Item, *, waits: bool) -> bool:
        """Queue `item`; False when the reader was closed."""
        with self._condition:
            if waits:
                self._condition.wait_for(lambda: self._is_closed or len(self._items) < MAX_PACKETS)
            if self._is_closed:
                return False
            if len(self._items) >= MAX_PACKETS:
                item = item._replace(dropped_before=len(self._items))
                self._items.clear()
            self._items.append(item)
            self._condition.notify_all()
            return True
