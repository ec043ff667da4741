"""Packets -> frames of the pool and sound on the job's line. What all ways in by FFmpeg share.

It outlives connections: canvas, colour and line are the job's. Runs in the ingest's thread.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import av
import av.error
import msgspec

from livefuse.aac import read_adts
from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.ingest.base import MediaInfo
from livefuse.ingest.canvas import Canvas
from livefuse.ingest.diagnose import create_codec_error
from livefuse.ingest.source import to_step
from livefuse.ingest.timeline import Timeline, to_ticks
from livefuse.packet import Packet

if TYPE_CHECKING:
    import threading
    from fractions import Fraction

    from av.stream import Stream
    from av.video.frame import VideoFrame

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.frame import Frame
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.source import Source
    from livefuse.packet import AudioInfo

MAX_DECODE_ERRORS: Final = 300
"""In a row, without one picture: then the decoder is not going to manage."""
_MAX_DISTRUST_NS: Final = 2 * NS_PER_S
_MAX_EARLY_SOUND: Final = 512
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
        self._timeline = Timeline(sink.count, is_live=is_live)
        self._canvas: Canvas | None = None
        self._source: Source | None = None
        self._first_audio: AudioInfo | None = None
        self._is_new_segment = True
        self._relays_sound = False
        self._has_delivered = False
        self._has_skipped = False
        self._early: deque[tuple[av.Packet[Stream], int]] = deque(maxlen=_MAX_EARLY_SOUND)
        self._arrivals: dict[int, int] = {}
        self._distrust_until_ns = 0
        self._errors = 0

    def begin_segment(self, source: Source) -> None:
        """Take a newly opened source; the line goes on where real time is."""
        self._source = source
        self._is_new_segment = True
        self._arrivals.clear()
        self._early.clear()
        self._distrust_until_ns = self._errors = 0
        self._relays_sound = source.audio is not None
        self._timeline.begin_segment(now_ns=self._clock.now_ns(), step=to_step(source.fps))
        if self._canvas is not None:
            self._canvas.set_aspect(source.aspect)
            self._relays_sound = self._is_told_sound(source.audio)

    def take(self, packet: av.Packet[Stream], arrival_ns: int, *, is_video: bool) -> None:
        """Take a packet of either kind.

        Raises:
            IngestUnsupportedError: nothing that came could be decoded.
        """
        source = self._source
        if source is None:
            return
        if is_video:
            self._take_video(source, packet, arrival_ns)
        elif self._relays_sound:
            self._take_sound(packet, arrival_ns)

    def distrust(self, now_ns: int) -> None:
        """Hold pictures back until the next keyframe, or two seconds where none comes."""
        self._distrust_until_ns = now_ns + _MAX_DISTRUST_NS

    def flush(self) -> None:
        """Take what the decoder still holds, at the end of a file."""
        if self._source is not None:
            self._decode(self._source, None, self._clock.now_ns())

    def _take_video(self, source: Source, packet: av.Packet[Stream], arrival_ns: int) -> None:
        if packet.pts is not None:
            if len(self._arrivals) >= _MAX_ARRIVALS:
                self._arrivals.pop(next(iter(self._arrivals)))
            self._arrivals[packet.pts] = arrival_ns
        if packet.is_corrupt:
            self.distrust(arrival_ns)
        self._decode(source, packet, arrival_ns)

    def _decode(self, source: Source, packet: av.Packet[Stream] | None, now_ns: int) -> None:
        try:
            frames = source.decoder.decode(packet)
            self._clock.charge("decode")
        except av.error.FFmpegError:
            self._note_decode_error(source, now_ns)
            return
        for frame in frames:
            self._errors = 0
            arrival_ns = self._arrivals.pop(frame.pts, now_ns) if frame.pts is not None else now_ns
            if self._is_trusted(frame, packet, now_ns):
                self._pass_on(source, frame, arrival_ns)
            else:
                self._sink.count("corrupt")

    def _note_decode_error(self, source: Source, now_ns: int) -> None:
        """Count it; before the first picture it is only the middle of a group of pictures."""
        self._errors += 1
        if not self._is_new_segment:
            self._sink.count("decode_error")
            self.distrust(now_ns)
        if self._errors > MAX_DECODE_ERRORS:
            raise create_codec_error(source.url, source.decoder_name)

    def _is_trusted(self, frame: VideoFrame, packet: av.Packet[Stream] | None, now_ns: int) -> bool:
        if frame.is_corrupt:
            return False
        if not self._distrust_until_ns:
            return True
        is_damaged = packet is not None and packet.is_corrupt
        if (frame.key_frame and not is_damaged) or now_ns >= self._distrust_until_ns:
            self._distrust_until_ns = 0
            return True
        return False

    def _pass_on(self, source: Source, frame: VideoFrame, arrival_ns: int) -> None:
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
        self, frame: VideoFrame, base: Fraction | None, target: Frame, arrival_ns: int
    ) -> None:
        pts = frame.pts if frame.pts is not None else frame.dts
        if not self._has_delivered:
            self._anchor_file(pts, base)
        target.pts = self._timeline.stamp_video(pts, base, arrival_ns)
        target.arrival_ns = arrival_ns
        self._has_delivered = True
        while self._early:
            self._send_sound(*self._early.popleft())
        self._sink.on_frame(target)

    def _anchor_file(self, pts: int | None, base: Fraction | None) -> None:
        """Let a file that nothing was skipped of start with its sound, where that comes first."""
        if self._is_live or self._has_skipped or pts is None or not base:
            return
        stamps = [(pts, base)]
        if self._early:
            sound = self._early[0][0]
            if sound.pts is not None and sound.time_base:
                stamps.append((sound.pts, sound.time_base))
        self._timeline.begin_segment(*stamps, now_ns=self._clock.now_ns())

    def _tell(self, source: Source, canvas: Canvas) -> None:
        if not self.has_media:
            self.has_media = True
            self._first_audio = source.audio
            self._sink.on_media(
                MediaInfo(
                    width=canvas.width,
                    height=canvas.height,
                    fps=source.fps,
                    colour=canvas.colour,
                    audio=self._refine_sound(source.audio),
                    is_live=self._is_live,
                    decoder=source.decoder_name,
                    notes=canvas.notes,
                )
            )
        self._sink.on_state("live")

    def _refine_sound(self, audio: AudioInfo | None) -> AudioInfo | None:
        """Believe the header of the sound that has come already, rather than a guess."""
        if audio is None or audio.codec != "aac" or not self._early:
            return audio
        header = read_adts(bytes(self._early[0][0]))
        if header is None or not header.config:
            return audio
        return msgspec.structs.replace(
            audio,
            sample_rate_hz=header.sample_rate_hz,
            channels=header.channels,
            extradata=header.config,
        )

    def _is_told_sound(self, audio: AudioInfo | None) -> bool:
        """Say whether sound after a reconnect is of the kind that the outputs were told."""
        first = self._first_audio
        if audio is None or first is None:
            return False
        is_same = (audio.codec, audio.sample_rate_hz, audio.channels) == (
            first.codec,
            first.sample_rate_hz,
            first.channels,
        )
        if not is_same:
            self._sink.count("audio_changed")
        return is_same

    def _take_sound(self, packet: av.Packet[Stream], arrival_ns: int) -> None:
        if self._has_delivered and not self._is_new_segment and not self._early:
            self._send_sound(packet, arrival_ns)
        else:
            self._early.append((packet, arrival_ns))

    def _send_sound(self, packet: av.Packet[Stream], arrival_ns: int) -> None:
        base = packet.time_base
        duration = to_ticks(packet.duration, base) if packet.duration and base else 0
        pts = packet.pts if packet.pts is not None else packet.dts
        place = self._timeline.stamp_audio(pts, base, arrival_ns, duration)
        if place is None:
            return
        data = bytes(packet)
        self._sink.on_audio(
            Packet("audio", data, place, place, duration, is_keyframe=True, arrival_ns=arrival_ns)
        )
