"""The one encode of a job: H.264, zero latency, closed groups, no B-frames.

Encoders are data: a candidate row each, probed by encoding a real picture before it is believed.
Packets are Annex B; every keyframe brings SPS and PPS, so that each output can start there.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import av
from av.codec.hwaccel import HWAccel
from av.video.frame import PictureType

from livefuse.config import EncodeConfig
from livefuse.errors import ConfigError, PublishError
from livefuse.frame import TIME_BASE_HZ, Colour, create_frame
from livefuse.packet import Packet, VideoInfo
from livefuse.publish.h264 import has_parameter_sets
from livefuse.publish.mux import COLOUR_CODES, RANGE_CODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.video.codeccontext import VideoCodecContext

    from livefuse.frame import Frame

_GLOBAL_HEADER: Final = 1 << 22
_CLOSED_GOP: Final = 1 << 31
_PROBE_PX: Final = (640, 360)
# The encoder's own interval is a backstop only: keyframes are placed by time, as the rate varies.
_BACKSTOP: Final = 4
_MAX_WAITING: Final = 64


class Candidate(NamedTuple):
    """A way to encode: `device_glob` must exist, `reads_at_once` says that no copy is needed."""

    encoder: str
    device_glob: str
    hwaccel: str
    reads_at_once: bool
    build_options: Callable[[EncodeConfig], dict[str, str]]


def _build_x264_options(config: EncodeConfig) -> dict[str, str]:
    # No scene cuts: a keyframe at each would break the cadence and the bit rate.
    return {
        "preset": config.preset,
        "tune": "zerolatency",
        "forced-idr": "1",
        "sc_threshold": "0",
    }


def _build_nvenc_options(_config: EncodeConfig) -> dict[str, str]:
    return {
        "preset": "p3",
        "tune": "ull",
        "zerolatency": "1",
        "delay": "0",
        "rc": "cbr",
        "forced-idr": "1",
        "no-scenecut": "1",
    }


def _build_qsv_options(_config: EncodeConfig) -> dict[str, str]:
    return {"preset": "veryfast", "async_depth": "1", "low_delay_brc": "1", "forced_idr": "1"}


def _build_vaapi_options(_config: EncodeConfig) -> dict[str, str]:
    return {"async_depth": "1", "rc_mode": "CBR"}


CANDIDATES: Final = (
    Candidate("h264_nvenc", "/dev/nvidia[0-9]*", "", False, _build_nvenc_options),  # noqa: FBT003 - a row of the table
    Candidate("h264_qsv", "/dev/dri/renderD*", "", False, _build_qsv_options),  # noqa: FBT003 - a row of the table
    Candidate("h264_vaapi", "/dev/dri/renderD*", "vaapi", False, _build_vaapi_options),  # noqa: FBT003 - a row of the table
    Candidate("libx264", "", "", True, _build_x264_options),  # noqa: FBT003 - a row of the table
)


class VideoEncoder:
    """Encodes frames of one size. `encode` and `flush` in one thread, `force_keyframe` in any.

    Args:
        config: the encode section.
        width: px, even.
        height: px, even.
        fps: the nominal rate; real time stamps decide.
        colour: what the planes mean; it is written into the stream.

    Raises:
        ConfigError: the encoder that was asked for cannot be opened here.
        PublishError: no encoder can be opened.
    """

    def __init__(
        self, config: EncodeConfig, width: int, height: int, fps: float, colour: Colour
    ) -> None:
        self._candidate = find_candidate(config)
        self._rate = Fraction(max(fps, 1.0)).limit_denominator(1001)
        self._context = _open_context(self._candidate, config, (width, height), self._rate, colour)
        self.name = self._candidate.encoder
        self._interval = round(config.keyframe_interval_s * TIME_BASE_HZ)
        self._duration = round(TIME_BASE_HZ / self._rate)
        self._next_keyframe_pts = 0
        self._is_forced = False
        self._arrivals: dict[int, int] = {}
        self._parameter_sets = self._context.extradata or b""
        self._colour = colour
        self._size = (width, height)

    @property
    def info(self) -> VideoInfo:
        """What outputs are told of the stream."""
        width, height = self._size
        return VideoInfo(
            "h264",
            width,
            height,
            self._rate.numerator,
            self._rate.denominator,
            self._parameter_sets,
            self._colour.matrix,
            self._colour.full_range,
        )

    def force_keyframe(self) -> None:
        """Make the next frame a keyframe (IDR). From any thread; the caller limits the rate."""
        self._is_forced = True

    def encode(self, frame: Frame) -> list[Packet]:
        """Return the packets that are ready: with zero latency, the frame's own.

        The planes are read before this returns, so the frame may be reused at once.

        Raises:
            PublishError: the encoder failed.
        """
        picture = self._wrap(frame)
        picture.pts = frame.pts
        picture.time_base = Fraction(1, TIME_BASE_HZ)
        if self._is_forced or frame.pts >= self._next_keyframe_pts:
            self._is_forced = False
            # A little early: a stamp that jitters must not push the keyframe one frame on.
            self._next_keyframe_pts = frame.pts + self._interval - self._duration // 4
            picture.pict_type = PictureType.I
        self._arrivals[frame.pts] = frame.arrival_ns
        if len(self._arrivals) > _MAX_WAITING:
            del self._arrivals[next(iter(self._arrivals))]
        return self._run(picture)

    def flush(self) -> list[Packet]:
        """Return what the encoder still holds; it takes no more frames after this."""
        return self._run(None)

    def close(self) -> None:
        """Let go of its memory, some 20 MB at 720p; only what it is called and said stays."""
        if hasattr(self, "_context"):
            del self._context

    def _wrap(self, frame: Frame) -> av.VideoFrame:
        if isinstance(frame.picture, av.VideoFrame):
            # Nobody wanted the planes. Its type is the source encoder's choice, not ours.
            frame.picture.pict_type = PictureType.NONE
            return frame.picture
        if self._candidate.reads_at_once:
            return av.VideoFrame.from_numpy_buffer(frame.buffer, format="yuv420p")
        return av.VideoFrame.from_ndarray(frame.buffer, format="yuv420p")

    def _run(self, picture: av.VideoFrame | None) -> list[Packet]:
        try:
            return [self._convert(packet) for packet in self._context.encode(picture)]
        except av.FFmpegError as error:
            raise PublishError(
                f"the encoder {self.name} failed ({error.strerror})",
                hint="set encode.encoder to libx264 when this goes on",
            ) from None

    def _convert(self, packet: av.Packet[Any]) -> Packet:
        data = bytes(packet)
        if packet.is_keyframe and not has_parameter_sets(data):
            data = self._parameter_sets + data
        pts = packet.pts if packet.pts is not None else 0
        return Packet(
            "video",
            data,
            pts,
            packet.dts if packet.dts is not None else pts,
            self._duration,
            packet.is_keyframe,
            self._arrivals.pop(pts, 0),
        )


def find_candidate(config: EncodeConfig) -> Candidate:
    """Return the encoder to use: the one asked for, or the first that works here.

    Raises:
        ConfigError: the one asked for does not work here.
        PublishError: none works.
    """
    for candidate in CANDIDATES:
        if config.encoder not in ("auto", candidate.encoder):
            continue
        problem = probe_candidate(candidate)
        if not problem:
            return candidate
        if config.encoder != "auto":
            raise ConfigError(
                f"the encoder {candidate.encoder} does not work on this machine ({problem})",
                hint='set encode.encoder to "auto" or "libx264"',
            )
    raise PublishError("no H.264 encoder works here", hint="install av again: its wheel has x264")


@functools.cache
def probe_candidate(candidate: Candidate) -> str:
    """Return why `candidate` cannot be used here, or nothing: it encoded a picture."""
    if candidate.device_glob:
        pattern = Path(candidate.device_glob)
        if not any(pattern.parent.glob(pattern.name)):
            return "there is no such device"
    width, height = _PROBE_PX
    try:
        context = _open_context(candidate, EncodeConfig(), (width, height), Fraction(30), Colour())
        picture = av.VideoFrame.from_ndarray(create_frame(width, height).buffer, format="yuv420p")
        picture.pts = 0
        packets = context.encode(picture) + context.encode(None)
    except (av.FFmpegError, OSError, ValueError, RuntimeError, NotImplementedError) as error:
        # Without its device a hardware encoder fails in many ways, PermissionError among them.
        return str(error) or type(error).__name__
    return "" if packets and context.extradata else "it gives no picture"


def _open_context(
    candidate: Candidate,
    config: EncodeConfig,
    size_px: tuple[int, int],
    rate: Fraction,
    colour: Colour,
) -> VideoCodecContext:
    hwaccel = HWAccel(candidate.hwaccel) if candidate.hwaccel else None
    context = cast(
        "VideoCodecContext", av.CodecContext.create(candidate.encoder, "w", hwaccel=hwaccel)
    )
    context.width, context.height = size_px
    context.pix_fmt = "yuv420p"
    context.time_base = Fraction(1, TIME_BASE_HZ)
    context.framerate = rate
    context.max_b_frames = 0
    context.gop_size = max(round(config.keyframe_interval_s * rate * _BACKSTOP), 1)
    context.thread_count = config.threads
    context.thread_type = "SLICE"
    context.flags |= _GLOBAL_HEADER | _CLOSED_GOP - (1 << 32)
    code = COLOUR_CODES[colour.matrix]
    context.colorspace = context.color_primaries = context.color_trc = code
    context.color_range = RANGE_CODES[colour.full_range]
    context.bit_rate = config.bitrate_kbps * 1000
    context.options = {
        **candidate.build_options(config),
        # A buffer of one second: what is asked for is what the network sees.
        "maxrate": str(config.bitrate_kbps * 1000),
        "bufsize": str(config.bitrate_kbps * 1000),
    }
    context.open()
    return context
