"""What every way in has in common: an `Ingest` runs in its own thread and fills an `IngestSink`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from livefuse.errors import LivefuseError
    from livefuse.frame import Colour, Frame
    from livefuse.packet import AudioInfo, Packet

InputState = Literal["connecting", "live", "stalled", "lost", "ended"]


@dataclass(slots=True, frozen=True)
class MediaInfo:
    """What the input turned out to be. Told once, before the first frame.

    `width` and `height` are the canvas: even, fixed for the job's life; every frame has this size.
    `is_live` is False for a file; `notes` are sentences for the user (cropped, tone-mapped, ...).
    """

    width: int
    height: int
    fps: float
    colour: Colour
    audio: AudioInfo | None
    is_live: bool
    decoder: str = ""
    notes: tuple[str, ...] = ()


class IngestSink(Protocol):
    """What a job gives its ingest. All methods are called from the ingest's thread."""

    def on_media(self, media: MediaInfo) -> None:
        """Take the description; frames can be acquired after this."""
        ...

    def acquire_frame(self) -> Frame | None:
        """Return a frame to fill, or None when the pool is empty (count it as a drop, go on)."""
        ...

    def on_frame(self, frame: Frame) -> None:
        """Take a filled frame; blocks in `every_frame` mode while the pipeline is busy."""
        ...

    def on_audio(self, packet: Packet) -> None:
        """Take an encoded packet of the audio told by `on_media`; never blocks in live mode.

        AAC from MPEG-TS still has its ADTS headers.
        """
        ...

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Take a change of state, with its cause."""
        ...

    def count(self, event: str, amount: int = 1) -> None:
        """Count something by name: `dropped_pool`, `corrected_pts`, `corrupt`, `reconnect`, ..."""
        ...

    def begin_work(self) -> None:
        """Take note that a packet is being worked on: a decoder that hangs is noticed by it."""
        ...

    def end_work(self) -> None:
        """Take note that it is done, and the next one is waited for."""
        ...


class Ingest(Protocol):
    """A source of frames and sound."""

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` until the source ends for good or `stop` is called. Blocks its thread.

        Raises:
            IngestError: it could not be opened the first time, or not any more.
        """
        ...

    def stop(self) -> None:
        """Ask `run` to return; from any thread, returns at once."""
        ...
