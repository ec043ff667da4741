"""What stands where packets go: the decoder, or one that only keeps them (tap.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading

    import av
    from av.stream import Stream

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.source import Source


class Stage(Protocol):
    """Takes packets, in the ingest's thread.

    `has_media` says that there has been a picture, `frames` how many by now.
    """

    has_media: bool
    frames: int

    def begin_segment(self, source: Source) -> None:
        """Take a newly opened source."""
        ...

    def take(self, packet: av.Packet[Stream], arrival_ns: int, *, is_video: bool) -> None:
        """Take a packet of either kind."""
        ...

    def distrust(self, now_ns: int) -> None:
        """Take note that packets are missing here."""
        ...

    def flush(self) -> None:
        """Take the end of a file."""
        ...


class StageMaker(Protocol):
    """Makes a stage; `DecodeStage` itself is one."""

    def __call__(
        self,
        sink: IngestSink,
        config: IngestConfig,
        clock: Clock,
        stopping: threading.Event,
        *,
        is_live: bool,
        every_frame: bool = False,
    ) -> Stage:
        """Return a stage that fills `sink`."""
        ...
