"""The stream for any number of onlookers: muxed once into chunks, FLV or MPEG-TS (HTTP-FLV).

While nobody watches nothing is muxed and nothing is kept. Each viewer has a bounded queue of its
own; one that reads too slowly skips to the live edge at the next keyframe, and nobody else notices.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

from livefuse.clock import Clock, SystemClock
from livefuse.publish.base import OutputStatus
from livefuse.publish.gop_queue import GopQueue
from livefuse.publish.mux import create_packet_writer
from livefuse.publish.state_cell import StateCell

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import HttpConfig
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.publish.mux import PacketWriter

StreamFormat = Literal["flv", "ts"]


class LiveStream:
    """An `Output` that viewers can join at any time. Safe from any thread."""

    def __init__(
        self,
        stream_format: StreamFormat,
        config: HttpConfig,
        request_keyframe: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        self._format = stream_format
        self._config = config
        self._request_keyframe = request_keyframe
        self._lock = threading.Lock()
        self._viewers: list[Viewer] = []
        self._writer: PacketWriter | None = None
        self._header = b""
        self._cell = StateCell(clock or SystemClock())
        self._packets = self._dropped_before = 0

    def open(self, streams: StreamsInfo) -> None:
        """Take the description; viewers that wait already are given the header."""
        with self._lock:
            self._writer = create_packet_writer(f".{self._format}", streams)
            self._header = self._writer.build_header()
            self._cell.change("live")
            viewers = list(self._viewers)
            for viewer in viewers:
                viewer.start(self._header)
        for viewer in viewers:
            viewer.wake()

    def send(self, packet: Packet) -> None:
        """Mux `packet` once and hand it to every viewer; returns at once."""
        with self._lock:
            if not self._viewers or self._writer is None:
                return
            chunk = self._writer.write(packet)
            if not chunk:
                return
            self._packets += 1
            is_keyframe = packet.kind == "video" and packet.is_keyframe
            if is_keyframe and self._format == "flv":
                # It says by now whether pictures are generated. One of TS has counters: it stays.
                self._header = self._writer.build_header()
            woken = [v for v in self._viewers if v.put(chunk, is_keyframe=is_keyframe)]
        for viewer in woken:
            viewer.wake()

    def close(self, timeout_s: float) -> None:  # noqa: ARG002 - nothing here takes time
        """End the stream: viewers read what they have, then its end."""
        with self._lock:
            self._cell.change("closed")
            viewers = list(self._viewers)
            for viewer in viewers:
                viewer.end()
        for viewer in viewers:
            viewer.wake()

    def subscribe(self, wake: Callable[[], None]) -> Viewer:
        """Join; `wake` is called from other threads whenever there is something new to read.

        A keyframe is asked for, so that the first picture is a fresh one.
        """
        viewer = Viewer(wake, self._config.viewer_queue_bytes, self._lock, self._leave)
        with self._lock:
            if self._cell.state == "closed":
                viewer.end()
            else:
                self._viewers.append(viewer)
            if self._header:
                viewer.start(self._header)
        self._request_keyframe()
        return viewer

    def status(self) -> OutputStatus:
        """Return a snapshot."""
        with self._lock:
            return OutputStatus(
                kind=f"http-{self._format}",
                url=f"live.{self._format}",
                state=self._cell.state,
                connected=self._cell.state == "live",
                packets=self._packets,
                dropped=self._dropped_before + sum(v.dropped for v in self._viewers),
                viewers=len(self._viewers),
                state_s=self._cell.count_seconds(),
            )

    def _leave(self, viewer: Viewer) -> None:
        with self._lock:
            if viewer in self._viewers:
                self._viewers.remove(viewer)
                self._dropped_before += viewer.dropped


class Viewer:
    """One onlooker's queue. `read` and `close` from its own thread or loop."""

    def __init__(
        self,
        wake: Callable[[], None],
        limit_bytes: int,
        lock: threading.Lock,
        leave: Callable[[Viewer], None],
    ) -> None:
        self.wake = wake
        self._lock = lock
        self._leave = leave
        self._header = b""
        self._queue: GopQueue[bytes] = GopQueue(limit_bytes)
        self._dropped = 0
        self._has_begun = self._has_ended = False

    @property
    def dropped(self) -> int:
        """How many chunks were skipped because this viewer was slow."""
        return self._dropped

    def read(self) -> bytes | None:
        """Return all that waits, b"" when nothing does, None when the stream has ended.

        The header comes first, then everything from a keyframe on.
        """
        with self._lock:
            parts = [self._header]
            self._header = b""
            while (chunk := self._queue.get()) is not None:
                parts.append(chunk)
            data = b"".join(parts)
            return None if self._has_ended and not data else data

    def close(self) -> None:
        """Leave."""
        self._leave(self)

    # Called by the stream, under its lock.

    def start(self, header: bytes) -> None:
        """Take the header that goes before everything."""
        self._header = header

    def put(self, chunk: bytes, *, is_keyframe: bool) -> bool:
        """Take a chunk; return whether there is something new to read."""
        before = self._queue.dropped
        taken = self._queue.put(chunk, weight=len(chunk), is_keyframe=is_keyframe)
        # What comes before the first keyframe was never promised.
        self._dropped += self._queue.dropped - before if self._has_begun else 0
        self._has_begun = self._has_begun or taken
        return taken

    def end(self) -> None:
        """No more will come."""
        self._has_ended = True
