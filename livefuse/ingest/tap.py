"""Tell somebody else what comes in: each connection, packet and change of state, as values.

A tap sits where packets go into the decoder (`TappedStage`), or in the decoder's place
(`PacketStage`, which decodes nothing). An ingest without one is not touched by any of this.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.recording_file import Taken
from livefuse.ingest.sidecar import Gap, Happened, Opened, Stored, VideoParameters

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import av
    from av.stream import Stream

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.errors import LivefuseError
    from livefuse.ingest.base import Ingest, IngestSink, InputState
    from livefuse.ingest.ratio import Ratio
    from livefuse.ingest.recording_file import Event
    from livefuse.ingest.source import Source
    from livefuse.ingest.stage import StageMaker

LOST_PACKETS: Final = "dropped_late_packets"
# Of the stream's numbering, or for encoders: no decoder asks for them.
_IGNORED_SIDE_DATA: Final = frozenset({"mpegts_stream_id", "rtcp_sr", "prft", "cpb_properties"})


class Tap(NamedTuple):
    """Who is told. `put` is called in the ingest's thread and must not block.

    Without `decodes` nothing is decoded and the sink gets no frames.
    """

    put: Callable[[Event], None]
    decodes: bool = True


class TappedStage(DecodeStage):
    """A `DecodeStage` that tells a tap of everything first."""

    def __init__(self, tap: Tap, *args: Any, **options: Any) -> None:  # noqa: ANN401 - DecodeStage's
        super().__init__(*args, **options)
        self._tap = tap

    def begin_segment(self, source: Source) -> None:
        """Tell and pass on."""
        self._tap.put(describe_source(source, self._clock.now_ns()))
        super().begin_segment(source)

    def take(self, packet: av.Packet[Stream], arrival_ns: int, *, is_video: bool) -> None:
        """Tell and pass on."""
        if packet.size:  # the last one of a container is empty
            self._tap.put(describe_packet(packet, arrival_ns, is_video=is_video))
        super().take(packet, arrival_ns, is_video=is_video)


class PacketStage:
    """Tells a tap of everything and decodes nothing. A packet of the pictures counts as one."""

    def __init__(  # noqa: PLR0913 - made in the place of a DecodeStage
        self,
        tap: Tap,
        sink: IngestSink,
        config: IngestConfig,  # noqa: ARG002 - as said above
        clock: Clock,
        stopping: threading.Event,  # noqa: ARG002 - as said above
        *,
        is_live: bool,  # noqa: ARG002 - as said above
        every_frame: bool = False,  # noqa: ARG002 - as said above
    ) -> None:
        self.has_media = False
        self.frames = 0
        self._tap = tap
        self._sink = sink
        self._clock = clock
        self._is_new = True

    def begin_segment(self, source: Source) -> None:
        """Tell of a connection."""
        self._is_new = True
        self._tap.put(describe_source(source, self._clock.now_ns()))

    def take(self, packet: av.Packet[Stream], arrival_ns: int, *, is_video: bool) -> None:
        """Tell of a packet."""
        if not packet.size:
            return
        self._tap.put(describe_packet(packet, arrival_ns, is_video=is_video))
        if is_video:
            self.has_media = True
            self.frames += 1
            if self._is_new:
                self._is_new = False
                self._sink.on_state("live")

    def distrust(self, now_ns: int) -> None:
        """What is missing has been counted, and so told, already."""

    def flush(self) -> None:
        """Nothing is held back."""


def tap_stage(tap: Tap) -> StageMaker:
    """Return what makes a stage that tells `tap`."""
    return partial(TappedStage if tap.decodes else PacketStage, tap)


class TappedIngest:
    """An ingest whose changes of state are told too."""

    def __init__(self, ingest: Ingest, tap: Tap, clock: Clock) -> None:
        self.inner = ingest
        self._tap = tap
        self._clock = clock

    def run(self, sink: IngestSink) -> None:
        """Run, as `Ingest.run`."""
        self.inner.run(_TappedSink(sink, self._tap, self._clock))

    def stop(self) -> None:
        """Stop, as `Ingest.stop`."""
        self.inner.stop()


class _TappedSink:
    """Only states and lost packets are listened to; the rest are the sink's own methods."""

    def __init__(self, sink: IngestSink, tap: Tap, clock: Clock) -> None:
        self._sink = sink
        self._tap = tap
        self._clock = clock
        self.on_media = sink.on_media
        self.acquire_frame = sink.acquire_frame
        self.on_frame = sink.on_frame
        self.on_audio = sink.on_audio
        self.begin_work = sink.begin_work
        self.end_work = sink.end_work

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Tell and pass on."""
        self._tap.put(Happened(at=self._clock.now_ns(), state=state))
        self._sink.on_state(state, error)

    def count(self, event: str, amount: int = 1) -> None:
        """Tell of packets that are missing before the next one, and pass on."""
        if event == LOST_PACKETS:
            self._tap.put(Gap(at=self._clock.now_ns(), packets=amount))
        self._sink.count(event, amount)


def describe_source(source: Source, now_ns: int) -> Opened:
    """Return what has to be known to decode `source` again, opened now."""
    decoder = source.decoder
    return Opened(
        at=now_ns,
        video=VideoParameters(
            codec=decoder.codec.canonical_name,
            decoder=decoder.codec.name,
            width=decoder.width,
            height=decoder.height,
            pix_fmt=decoder.pix_fmt or "",
            extradata=decoder.extradata or b"",
            base=_split(source.time_base),
            aspect=_split(source.aspect),
            fps=source.fps,
            reorder_depth=decoder.reorder_depth,
        ),
        audio=source.audio,
        is_finite=source.is_finite,
    )


def describe_packet(packet: av.Packet[Stream], arrival_ns: int, *, is_video: bool) -> Taken:
    """Return `packet` as a value."""
    # A way in that cannot give side data puts new parameter sets there.
    extradata = getattr(packet.opaque, "extradata", None)
    line = Stored(
        at=arrival_ns,
        sound=not is_video,
        pts=packet.pts,
        dts=packet.dts,
        duration=packet.duration or 0,
        base=_split(packet.time_base),
        key=bool(packet.is_keyframe),
        corrupt=bool(packet.is_corrupt),
        side={
            data.data_type: bytes(data)
            for data in packet.iter_sidedata()
            if data.data_type not in _IGNORED_SIDE_DATA and data.data_size
        }
        | ({"new_extradata": extradata} if extradata is not None else {}),
    )
    return Taken(bytes(packet), line)


def _split(ratio: Ratio | None) -> tuple[int, int] | None:
    # PyAV 19 gives a false object, not None, for a missing time base.
    return (ratio.numerator, ratio.denominator) if ratio else None
