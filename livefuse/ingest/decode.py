"""Packets -> frames of the pool and sound on the job's line. What all ways in by FFmpeg share.

It outlives connections: canvas, colour and line are the job's. Runs in the ingest's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import av.error

from livefuse.clock import NS_PER_MS
from livefuse.errors import IngestEndedError
from livefuse.ingest.base import MediaInfo
from livefuse.ingest.canvas import Canvas
from livefuse.ingest.diagnose import create_codec_error
from livefuse.ingest.nal import Finding, StreamWatch
from livefuse.ingest.sound import SoundRelay
from livefuse.ingest.source import read_new_extradata, renew_decoder, to_step
from livefuse.ingest.timeline import SourceTimeline
from livefuse.ingest.trust import ErrorBudget, Trust
from livefuse.redact import redact_url

if TYPE_CHECKING:
    import threading

    from av.stream import Stream
    from av.video.frame import VideoFrame

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.frame import Frame
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.ratio import Ratio
    from livefuse.ingest.source import Source

MAX_DECODE_ERRORS: Final = 300
"""In a row, before the first picture of a connection: then this decoder is not going to manage."""
_SELF_RECOVERING: Final = frozenset({"h264", "hevc"})
"""Of these FFmpeg gives out nothing until it can be whole; of others it starts with grey ones."""
_PATIENCE_PACKETS: Final = 60
_MAX_ARRIVALS: Final = 64
_POOL_WAIT_NS: Final = 2 * NS_PER_MS


class DecodeStage:
    """Fills a sink. `has_media` says that there has been a picture, `frames` how many by now."""

    def __init__(
        self,
        sink: IngestSink,
        config: IngestConfig,
        clock: Clock,
        stopping: threading.Event,
        *,
        is_live: bool,
        every_frame: bool = False,
    ) -> None:
        self.has_media = False
        self.frames = 0
        self._sink = sink
        self._config = config
        self._clock = clock
        self._stopping = stopping
        self._is_live = is_live
        self._every_frame = every_frame
        self._timeline = SourceTimeline(sink.count, is_live=is_live)
        self._sound = SoundRelay(sink, self._timeline)
        self._canvas: Canvas | None = None
        self._source: Source | None = None
        self._watch = StreamWatch("", b"")
        self._trust, self._budget = Trust(), ErrorBudget()
        self._is_new_segment = True
        self._has_delivered = False
        self._has_skipped = False
        self._arrivals: dict[int, int] = {}
        self._errors = 0
        self._unanswered: int | None = None

    def begin_segment(self, source: Source) -> None:
        """Take a newly opened source; the line goes on where real time is."""
        self._source = source
        self._is_new_segment = True
        self._arrivals.clear()
        self._errors = 0
        self._unanswered = None
        codec = source.decoder.codec.canonical_name
        self._watch = StreamWatch(codec, source.decoder.extradata or b"")
        self._trust, self._budget = Trust(), ErrorBudget()
        if self._is_live and codec not in _SELF_RECOVERING:
            self._trust.distrust(self._clock.now_ns())
        self._timeline.begin_segment(now_ns=self._clock.now_ns(), step=to_step(source.fps))
        self._sound.begin_segment(source.audio, is_first=self._canvas is None)
        if self._canvas is not None:
            self._canvas.set_aspect(source.aspect)

    def take(self, packet: av.Packet[Stream], arrival_ns: int, *, is_video: bool) -> None:
        """Take a packet of either kind.

        Raises:
            IngestUnsupportedError: nothing that came could be decoded.
            IngestEndedError: too little of what comes can be decoded any more; dial again.
        """
        source = self._source
        if source is None:
            return
        if is_video:
            self._take_video(source, packet, arrival_ns)
        else:
            may_send = self._has_delivered and not self._is_new_segment
            self._sound.take(packet, arrival_ns, may_send=may_send)

    def distrust(self, now_ns: int) -> None:
        """Hold pictures back until the next whole keyframe, or as long as trust.py says."""
        self._trust.distrust(now_ns)

    def flush(self) -> None:
        """Take what the decoder still holds, at the end of a file."""
        if self._source is not None:
            self._decode(self._source, None, self._clock.now_ns())

    def _take_video(self, source: Source, packet: av.Packet[Stream], arrival_ns: int) -> None:
        if packet.pts is not None:
            if len(self._arrivals) >= _MAX_ARRIVALS:
                self._arrivals.pop(next(iter(self._arrivals)))
            self._arrivals[packet.pts] = arrival_ns
        self._inspect(source, packet, arrival_ns)
        self._decode(source, packet, arrival_ns)
        if self._unanswered is not None:
            self._unanswered += 1
            if self._unanswered > _PATIENCE_PACKETS:
                self._note_decode_error(source, arrival_ns)

    def _inspect(self, source: Source, packet: av.Packet[Stream], arrival_ns: int) -> None:
        """Look at a packet before it is decoded: is it whole, does it change the decoder's kind."""
        extradata = read_new_extradata(packet)
        is_other = extradata is not None and self._watch.take_extradata(extradata)
        found = self._watch.look_at(bytes(packet)) if packet.size else Finding()
        if is_other or (found.has_new_parameters and found.is_whole_entry):
            self._renew(source, arrival_ns, extradata)
        elif self._trust.is_waiting and found.is_whole_entry and source.hardware is None:
            # What was damaged leaves traces in FFmpeg's decoder: its next keyframe is not exact.
            self._renew(source, arrival_ns)
        if packet.is_corrupt:
            self._trust.suspect(packet.pts, arrival_ns)
        if found.is_gap:
            self._sink.count("missing_pictures")
            self._trust.distrust(arrival_ns)
        if self._unanswered is None and (found.is_entry or packet.is_keyframe):
            self._unanswered = 0

    def _renew(self, source: Source, now_ns: int, extradata: bytes | None = None) -> None:
        """Go on with a new decoder, after what the old one still holds."""
        if self._is_new_segment and extradata is None:
            return  # Nothing has come out of the old one yet.
        self._decode(source, None, now_ns)
        source.decoder = renew_decoder(source, extradata)
        self._sink.count("decoder_renewed")

    def _decode(self, source: Source, packet: av.Packet[Stream] | None, now_ns: int) -> None:
        try:
            frames = source.decoder.decode(packet)
            self._clock.charge("decode")
        except av.error.FFmpegError:
            if packet is not None:
                self._note_decode_error(source, now_ns)
            return
        for frame in frames:
            self._errors = 0
            self._unanswered = None
            self._budget.note_picture()
            arrival_ns = self._arrivals.pop(frame.pts, now_ns) if frame.pts is not None else now_ns
            if self._trust.admits(
                frame.pts, now_ns, is_key=frame.key_frame, is_corrupt=frame.is_corrupt
            ):
                self._pass_on(source, frame, arrival_ns, now_ns)
            else:
                self._sink.count("corrupt")

    def _note_decode_error(self, source: Source, now_ns: int) -> None:
        """Count it; before the first picture it is only the middle of a group of pictures."""
        self._errors += 1
        if self._is_new_segment and self._unanswered is None:
            if self._errors > MAX_DECODE_ERRORS:
                raise create_codec_error(source.url, source.decoder_name)
            return
        self._sink.count("decode_error")
        self._trust.distrust(now_ns)
        verdict = self._budget.note_error()
        if verdict == "skip" or not self._is_live:
            return
        self._unanswered = None
        if verdict == "renew":
            self._renew_after_errors(source)
        elif not self.has_media:
            raise create_codec_error(source.url, source.decoder_name)
        else:
            raise IngestEndedError(
                f"the pictures of {redact_url(source.url)} cannot be decoded any more",
                hint="it is dialled again",
            )

    def _renew_after_errors(self, source: Source) -> None:
        """Start over, by the processor: what failed may have been the graphics chip."""
        source.hardware = None
        source.decoder = renew_decoder(source)
        self._sink.count("decoder_renewed")

    def _pass_on(self, source: Source, frame: VideoFrame, arrival_ns: int, ready_ns: int) -> None:
        canvas = self._canvas
        if canvas is None:
            canvas = self._canvas = Canvas(frame, size=self._config.canvas, aspect=source.aspect)
        if self._is_new_segment:
            self._is_new_segment = False
            self._tell(source, canvas)
        self.frames += 1
        target = self._acquire()
        if target is None:
            self._has_skipped = True
            if self._has_delivered:
                self._sink.count("dropped_pool")
            return
        target.ready_ns = ready_ns
        if canvas.fill(frame, target):
            self._sink.count("input_changed")
        # The last pictures of a file come out of the decoder without a time base.
        base = frame.time_base or source.time_base
        self._deliver(frame, base, target, arrival_ns)

    def _acquire(self) -> Frame | None:
        """Return a frame to fill; where every frame counts wait for one."""
        target = self._sink.acquire_frame()
        while target is None and self._every_frame:
            if self._clock.wait(self._stopping, _POOL_WAIT_NS):
                return None
            target = self._sink.acquire_frame()
        return target

    def _deliver(
        self, frame: VideoFrame, base: Ratio | None, target: Frame, arrival_ns: int
    ) -> None:
        pts = frame.pts if frame.pts is not None else frame.dts
        if not self._has_delivered:
            self._anchor_file(pts, base)
        target.pts = self._timeline.stamp_video(pts, base, arrival_ns)
        target.arrival_ns = arrival_ns
        self._has_delivered = True
        self._sound.release()
        self._sink.on_frame(target)

    def _anchor_file(self, pts: int | None, base: Ratio | None) -> None:
        """Let a file that nothing was skipped of start with its sound, where that comes first."""
        if self._is_live or self._has_skipped or pts is None or not base:
            return
        sound = self._sound.get_first_stamp()
        stamps = [(pts, base), sound] if sound is not None else [(pts, base)]
        self._timeline.begin_segment(*stamps, now_ns=self._clock.now_ns())

    def _tell(self, source: Source, canvas: Canvas) -> None:
        if not self.has_media:
            self.has_media = True
            self._sink.on_media(
                MediaInfo(
                    width=canvas.width,
                    height=canvas.height,
                    fps=source.fps,
                    colour=canvas.colour,
                    audio=self._sound.describe(source.audio),
                    is_live=self._is_live,
                    decoder=source.decoder_name,
                    notes=canvas.notes,
                )
            )
        self._sink.on_state("live")
