"""Clips for tests out of the synthetic sources: a face that moves, a counter, flash and beep."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.frame import TIME_BASE_HZ, FramePool
from livefuse.ingest.scene.drawing import read_counter
from livefuse.ingest.synthetic import SyntheticIngest

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import InputState, MediaInfo
    from livefuse.packet import Packet

__all__ = ["make_clip", "read_counter"]

_TICK = Fraction(1, TIME_BASE_HZ)


class _ClipSink:
    """A sink that writes an MP4: h264 yuv420p without B-frames, and the AAC as it comes."""

    def __init__(self, path: Path, fps: float, bitrate_kbps: int, video_codec: str) -> None:
        self._container = av.open(str(path), "w", format="mp4")
        self._fps, self._bitrate_kbps, self._video_codec = fps, bitrate_kbps, video_codec
        self._video: Any = None
        self._audio: Any = None
        self._pool: FramePool | None = None

    def on_media(self, media: MediaInfo) -> None:
        self._pool = FramePool(media.width, media.height, 1)
        rate = Fraction(self._fps).limit_denominator(1001)
        options = {"preset": "veryfast", "bf": "0", "g": str(round(self._fps)), "sc_threshold": "0"}
        self._video = self._container.add_stream(self._video_codec, rate=rate, options=options)
        self._video.width, self._video.height = media.width, media.height
        self._video.pix_fmt = "yuv420p"
        self._video.bit_rate = self._bitrate_kbps * 1000
        self._video.codec_context.time_base = _TICK
        context = self._video.codec_context
        context.colorspace = context.color_primaries = context.color_trc = 1  # BT.709
        context.color_range = 1  # limited
        if media.audio is not None:
            self._audio = self._container.add_stream("aac", rate=media.audio.sample_rate_hz)
            self._audio.layout = "mono"
            self._audio.codec_context.extradata = media.audio.extradata

    def acquire_frame(self) -> Frame | None:
        return self._pool.acquire() if self._pool is not None else None

    def on_frame(self, frame: Frame) -> None:
        assert self._pool is not None
        picture = av.VideoFrame.from_ndarray(frame.buffer, format="yuv420p")
        picture.pts, picture.time_base = frame.pts, _TICK
        self._container.mux(self._video.encode(picture))
        self._pool.release(frame)

    def on_audio(self, packet: Packet) -> None:
        encoded = av.Packet(packet.data)
        encoded.stream = self._audio
        encoded.pts, encoded.dts, encoded.duration = packet.pts, packet.dts, packet.duration
        encoded.time_base = _TICK
        self._container.mux(encoded)

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        pass

    def begin_work(self) -> None:
        pass

    def end_work(self) -> None:
        pass

    def count(self, event: str, amount: int = 1) -> None:
        raise AssertionError(f"a clip loses nothing, but: {event}")

    def close(self) -> None:
        if self._video is not None:
            self._container.mux(self._video.encode(None))
        self._container.close()


def make_clip(  # noqa: PLR0913 - each is a choice of some test, with a default
    path: Path,
    seconds: float,
    size: tuple[int, int] = (640, 360),
    fps: float = 30.0,
    *,
    face: bool = True,
    audio: bool = True,
    sync: bool = True,
    bitrate_kbps: int = 1500,
    video_codec: str = "libx264",
) -> Path:
    """Write an MP4 of h264 and AAC to `path` and return it; the counter starts at 0.

    With `face` the picture is the talking head, else bars without any face; `sync` adds a flash and
    a beep at each whole second. About 60 frames of 640x360 are made in a second.
    """
    kind = "demo" if face else "test"
    url = f"{kind}:?size={size[0]}x{size[1]}&fps={fps}&audio={int(audio)}&sync={int(sync)}"
    ingest = SyntheticIngest(
        f"{url}&frames={max(round(seconds * fps), 1)}",
        IngestConfig(),
        SystemClock(),
        paced=False,
        every_frame=True,
    )
    sink = _ClipSink(path, fps, bitrate_kbps, video_codec)
    try:
        ingest.run(sink)
    finally:
        sink.close()
    return path
