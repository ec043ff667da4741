"""A fixed time between arrival and leaving, the same for sound and pictures (`publish.delay_ms`).

What the work took varies, what a viewer gets does not: who mixes us with other sources can set
their delay once. Bounded: what is too much leaves early, in order.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S, Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.packet import Kind, Packet

_MAX_PACKETS: Final = 4096
_JOIN_S: Final = 2.0


class DelayQueue:
    """Packets by the time when they are due. Pure; not thread-safe."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_ns = delay_ms * NS_PER_MS
        self._waiting: list[tuple[int, int, Packet]] = []
        self._numbers = itertools.count()
        self._last_ns: dict[Kind, int] = {"video": 0, "audio": 0}

    def put(self, packet: Packet, now_ns: int) -> None:
        """Take a packet; what was made here (silence) arrives now."""
        due_ns = (packet.arrival_ns or now_ns) + self._delay_ns
        due_ns = max(due_ns, self._last_ns[packet.kind])  # each kind stays in its order
        self._last_ns[packet.kind] = due_ns
        heapq.heappush(self._waiting, (due_ns, next(self._numbers), packet))

    def take_due(self, now_ns: int) -> list[Packet]:
        """Return what is due at `now_ns`, in order, and what is too much."""
        due: list[Packet] = []
        while self._waiting and (
            self._waiting[0][0] <= now_ns or len(self._waiting) > _MAX_PACKETS
        ):
            due.append(heapq.heappop(self._waiting)[2])
        return due

    def get_wait_ns(self, now_ns: int) -> int | None:
        """Return how long until the next is due; None: there is none."""
        return max(self._waiting[0][0] - now_ns, 0) if self._waiting else None

    def take_all(self) -> list[Packet]:
        """Return all that waits, in order."""
        return [heapq.heappop(self._waiting)[2] for _ in range(len(self._waiting))]


class DelayLine:
    """Hands packets on when they are due, from a thread of its own. `put` from any thread."""

    def __init__(self, delay_ms: int, clock: Clock, deliver: Callable[[Packet], None]) -> None:
        self._queue = DelayQueue(delay_ms)
        self._clock = clock
        self._deliver = deliver
        self._changed = clock.create_condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="livefuse-delay", daemon=True)
        self._thread.start()

    def put(self, packet: Packet) -> None:
        """Take a packet; returns at once."""
        with self._changed:
            if not self._is_closing:
                self._queue.put(packet, self._clock.now_ns())
                self._changed.notify_all()

    def close(self) -> None:
        """Hand on at once what waits, and end."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        is_over = False
        while not is_over:
            with self._changed:
                now_ns = self._clock.now_ns()
                wait_ns = self._queue.get_wait_ns(now_ns)
                if wait_ns != 0 and not self._is_closing:
                    self._changed.wait(None if wait_ns is None else wait_ns / NS_PER_S)
                is_over = self._is_closing
                now_ns = self._clock.now_ns()
                due = self._queue.take_all() if is_over else self._queue.take_due(now_ns)
            for packet in due:
                self._deliver(packet)
