"""What the feeder, the thread and the onlookers of an RTMP target share, behind one lock."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.publish.base import OutputStatus
from livefuse.publish.gop_queue import GopQueue
from livefuse.publish.state_cell import StateCell
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.errors import PublishError
    from livefuse.packet import Packet
    from livefuse.publish.rtmp_failure import Failure

# So long must a connection hold before it counts: many servers refuse a key by hanging up.
_SETTLE_NS: Final = 300 * NS_PER_MS
_SOUNDS_TOGETHER: Final = 3


class Wakeup:
    """A pipe that ends a `poll` of another thread. It is there from `open` to `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.fd = self._write_fd = -1
        self._is_open = False

    def open(self) -> None:
        """Make the pipe: an output that is only checked, and refused, holds nothing."""
        with self._lock:
            self.fd, self._write_fd = os.pipe()
            self._is_open = True
            for fd in (self.fd, self._write_fd):
                os.set_blocking(fd, False)

    def set(self) -> None:
        """Wake; from any thread, also before `open` and after `close`."""
        with self._lock, contextlib.suppress(BlockingIOError):
            if self._is_open:
                os.write(self._write_fd, b"\x01")

    def clear(self) -> None:
        """Take note."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def close(self) -> None:
        """Free the pipe, once nobody polls it any more."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self.fd)
                os.close(self._write_fd)


class TargetState:
    """Queue, state and counters of one target. Safe from any thread."""

    def __init__(
        self, url: str, queue_packets: int, clock: Clock, request_keyframe: Callable[[], None]
    ) -> None:
        self.url = url
        self.wakeup = Wakeup()
        self.give_up = threading.Event()
        self._clock = clock
        self._request_keyframe = request_keyframe
        self._changed = threading.Condition()
        self._queue: GopQueue[Packet] = GopQueue(queue_packets)
        self._cell = StateCell(clock)
        self._error: PublishError | None = None
        self._is_connected = self._is_closing = False
        self._connected_ns = 0
        self._sent = self._dropped = self._connections = 0

    @property
    def is_closing(self) -> bool:
        """Whether the output is being closed."""
        return self._is_closing

    def offer(self, packet: Packet) -> bool:
        """Take `packet` if it can be used; return whether a keyframe must be asked for."""
        is_keyframe = packet.kind == "video" and packet.is_keyframe
        with self._changed:
            if self._is_closing:
                return False
            if not self._is_connected:
                self._dropped += 1
                return False
            was_waiting = self._queue.waits_for_keyframe
            self._queue.put(packet, is_keyframe=is_keyframe)
            has_overflowed = self._queue.waits_for_keyframe and not was_waiting
            # Sound goes along with the next picture: each wake costs two processes more than it
            # carries. When no picture comes it goes by itself.
            needs_wake = packet.kind == "video" or len(self._queue) >= _SOUNDS_TOGETHER
        if needs_wake:
            self.wakeup.set()
        return has_overflowed

    def take(self) -> Packet | None:
        """Return the next packet to send."""
        with self._changed:
            return self._queue.get()

    def count_waiting(self) -> int:
        """Return how many packets wait."""
        with self._changed:
            return len(self._queue)

    def note_connected(self) -> None:
        """The server has taken the connection and the header; it wants a keyframe next."""
        with self._changed:
            self._is_connected = True
            self._connected_ns = self._clock.now_ns()
            self._connections += 1
            self._changed.notify_all()
        # Outside the lock: a keyframe may be on its way to `offer` at once.
        self._request_keyframe()

    def note_sent(self, amount: int) -> None:
        """`amount` more packets have gone: once the connection has held, the target is live."""
        with self._changed:
            self._sent += amount
            if self._has_settled():
                self._cell.change("live")
                self._error = None

    def note_lost(self, failure: Failure | None, unacknowledged: int) -> None:
        """The connection has gone, with what was on its way."""
        with self._changed:
            self._is_connected = False
            self._queue.skip()
            self._dropped += unacknowledged
            if failure is not None:
                self._error = failure.error
                self._cell.change(failure.state, str(failure.error))
            self._changed.notify_all()

    def begin_closing(self) -> None:
        """Take nothing more."""
        with self._changed:
            self._is_closing = True
        self.wakeup.set()

    def note_closed(self) -> None:
        """It is over."""
        with self._changed:
            self._is_connected = False
            self._cell.change("closed", self._cell.error)
            self._changed.notify_all()

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until a connection has held for a moment; False when not within `timeout_s`.

        Raises:
            PublishError: what stood in the way.
        """
        deadline = self._clock.now_ns() + round(timeout_s * NS_PER_S)
        with self._changed:
            while self._cell.state != "closed":
                if self._error is not None and not self._is_connected:
                    raise self._error
                if self._has_settled():
                    return True
                if self._clock.now_ns() >= deadline:
                    return False
                self._changed.wait(_SETTLE_NS / NS_PER_S / 3)
        return False

    def status(self) -> OutputStatus:
        """Return a snapshot."""
        shown = redact_url(self.url)
        with self._changed:
            return OutputStatus(
                kind="rtmp",
                url=shown,
                state=self._cell.state,
                connected=self._is_connected,
                packets=self._sent,
                dropped=self._dropped + self._queue.dropped,
                reconnects=max(self._connections - 1, 0),
                error=self._cell.error,
                watch=f"ffplay -fflags nobuffer {shown}",
                state_s=self._cell.count_seconds(),
            )

    def _has_settled(self) -> bool:
        held_ns = self._clock.now_ns() - self._connected_ns
        return self._is_connected and held_ns >= _SETTLE_NS
