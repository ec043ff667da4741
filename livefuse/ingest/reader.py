"""A live source is opened and read in a thread of its own, which can be left behind.

FFmpeg cannot be interrupted: a name server or a silent peer holds the reader until a time-out. The
ingest does not wait for it. An abandoned reader ends by its own time-outs and closes its source.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.packet import Packet
    from av.stream import Stream

    from livefuse.clock import Clock
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.source import Source

MAX_PACKETS: Final = 1024
MAX_ABANDONED: Final = 4
"""Each ends within twice its time limit, so more would only come of a server that plays tricks."""
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


class PacketReader(Protocol):
    """What a connection takes packets from: a `Reader`, or a peer's feed."""

    def wait_opened(self, timeout_s: float) -> Source | None:
        """Return the opened source, or None when it takes longer; raise ReaderEnded at the end."""
        ...

    def get(self, timeout_s: float) -> Item | None:
        """Return the oldest packet, None when none came in time; raise ReaderEnded at the end."""
        ...


class Abandoned:
    """The readers of one ingest that were left behind in FFmpeg. Used from the ingest's thread."""

    def __init__(self) -> None:
        self._readers: list[Reader] = []

    @property
    def is_full(self) -> bool:
        """Whether so many still hang that no more are to be started."""
        self._readers = [reader for reader in self._readers if not reader.has_ended]
        return len(self._readers) >= MAX_ABANDONED

    def close(self, reader: Reader, sink: IngestSink) -> None:
        """Close `reader`; if it hangs keep it in mind, and count it."""
        if not reader.close():
            self._readers.append(reader)
            sink.count("abandoned_readers")


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

    @property
    def has_ended(self) -> bool:
        """Whether its thread is gone."""
        return not self._thread.is_alive()

    def close(self) -> bool:
        """Let the thread go, waiting only a moment; False when it is left behind."""
        self.interrupt()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)
        return self.has_ended

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
