"""One connection's life: wait until it opens, take its packets, notice a stall or a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import IngestEndedError, IngestError
from livefuse.ingest.diagnose import FOREIGN_ERRORS, create_timeout_error, diagnose_open_error
from livefuse.ingest.pacer import Pacer
from livefuse.ingest.reader import ReaderEnded
from livefuse.redact import redact_text, redact_url

if TYPE_CHECKING:
    import threading

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.reader import Item, PacketReader
    from livefuse.ingest.source import Source
    from livefuse.ingest.stage import Stage

STALL_NS: Final = NS_PER_S * 4 // 5
"""Without a picture for this long a live source counts as stalled: known within a second."""
_STALL_STEPS: Final = 2.5
"""Of a slow source, so many usual distances of its pictures."""
_LONGEST_STALL_NS: Final = 10 * NS_PER_S
_POLL_S: Final = 0.1
_OPEN_GRACE_NS: Final = NS_PER_S // 2
"""FFmpeg has the same time limit and may know better why nothing came, so it may speak first."""
_KEYFRAME_GRACE_NS: Final = 10 * NS_PER_S


class Connection:
    """Takes one reader from opening to its end. Used once, in the ingest's thread."""

    def __init__(
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        stopping: threading.Event,
        sink: IngestSink,
        stage: Stage,
    ) -> None:
        self._url = url
        self._config = config
        self._clock = clock
        self._stopping = stopping
        self._sink = sink
        self._stage = stage
        self._pacer: Pacer | None = None
        self._is_stalled = False
        self._stall_ns = STALL_NS

    def run(self, reader: PacketReader, *, waits_for_ever: bool = False) -> bool:
        """Take everything from `reader`; return True at a true end or when stopped.

        With `waits_for_ever` (a listener) opening has no deadline.

        Raises:
            IngestError: it could not be opened, or was lost; the cause is told.
        """
        started_ns = self._clock.now_ns()
        source = self._open(reader, started_ns, waits_for_ever=waits_for_ever)
        if source is None:
            return True
        if source.is_bursty:
            is_endless = not source.is_finite
            self._pacer = Pacer(self._clock, self._stopping, is_endless=is_endless)
        usual_ns = int(_STALL_STEPS * NS_PER_S / source.fps)
        self._stall_ns = min(max(STALL_NS, usual_ns), _LONGEST_STALL_NS)
        self._stage.begin_segment(source)
        try:
            self._take_all(reader, self._clock.now_ns() if waits_for_ever else started_ns)
        except ReaderEnded as end:
            if end.cause is None and source.is_finite:
                self._stage.flush()
                return True
            raise self._describe_loss(end.cause) from None
        return True

    def _open(
        self, reader: PacketReader, started_ns: int, *, waits_for_ever: bool
    ) -> Source | None:
        timeout_ns = self._config.open_timeout_ms * NS_PER_MS + _OPEN_GRACE_NS
        while not self._stopping.is_set():
            try:
                source = reader.wait_opened(_POLL_S)
            except ReaderEnded as end:
                raise self._diagnose(end.cause, started_ns) from None
            if source is not None:
                return source
            elapsed_ns = self._clock.now_ns() - started_ns
            if elapsed_ns > timeout_ns and not waits_for_ever:
                raise create_timeout_error(self._url, elapsed_ns / NS_PER_S)
        return None

    def _take_all(self, reader: PacketReader, started_ns: int) -> None:
        """Take packets until stopped; raises ReaderEnded at the end."""
        before = seen = self._stage.frames
        last_packet_ns: int | None = None
        last_picture_ns = started_ns
        while not self._stopping.is_set():
            item = reader.get(_POLL_S)
            now = self._clock.now_ns()
            if item is not None:
                self._take(item)
                if item.is_video:
                    last_packet_ns = now
            elif self._stopping.is_set():
                return
            if self._stage.frames == before:
                self._check_start(started_ns, last_packet_ns)
            elif last_packet_ns is not None:
                if self._stage.frames != seen:
                    seen, last_picture_ns = self._stage.frames, now
                self._check_flow(now - last_packet_ns, now - last_picture_ns)

    def _take(self, item: Item) -> None:
        if item.dropped_before:
            self._sink.count("dropped_late_packets", item.dropped_before)
            self._stage.distrust(item.arrival_ns)
        arrival_ns = item.arrival_ns
        if self._pacer is not None:
            packet = item.packet
            arrival_ns = self._pacer.wait_for(
                packet.dts if packet.dts is not None else packet.pts, packet.time_base
            )
        self._sink.begin_work()
        try:
            self._stage.take(item.packet, arrival_ns, is_video=item.is_video)
        finally:
            self._sink.end_work()

    def _check_start(self, started_ns: int, last_video_ns: int | None) -> None:
        """Give up on a source without a picture; one that sends may still owe its keyframe."""
        limit = self._config.open_timeout_ms * NS_PER_MS
        if last_video_ns is not None:
            limit += _KEYFRAME_GRACE_NS
        elapsed_ns = self._clock.now_ns() - started_ns
        if elapsed_ns > limit:
            raise create_timeout_error(self._url, elapsed_ns / NS_PER_S)

    def _check_flow(self, silent_ns: int, blind_ns: int) -> None:
        """Tell a stall, which is that no picture comes, and its end; give up on long silence."""
        if silent_ns > self._config.read_timeout_ms * NS_PER_MS:
            raise create_timeout_error(self._url, silent_ns / NS_PER_S)
        is_stalled = blind_ns > self._stall_ns
        if is_stalled != self._is_stalled:
            self._is_stalled = is_stalled
            self._sink.on_state("stalled" if is_stalled else "live")

    def _diagnose(self, cause: Exception | None, started_ns: int) -> IngestError:
        if cause is None or isinstance(cause, IngestError):
            return self._describe_loss(cause)
        if not isinstance(cause, FOREIGN_ERRORS):
            raise cause
        elapsed_s = (self._clock.now_ns() - started_ns) / NS_PER_S
        return diagnose_open_error(cause, self._url, self._config, elapsed_s, self._stopping)

    def _describe_loss(self, cause: Exception | None) -> IngestError:
        if isinstance(cause, IngestError):
            return cause
        if cause is not None and not isinstance(cause, FOREIGN_ERRORS):
            raise cause
        words = getattr(cause, "strerror", None)
        reason = f" ({redact_text(words, (self._url,))})" if words else ""
        return IngestEndedError(
            f"{redact_url(self._url)} went away{reason}", hint="waiting for it to come back"
        )
