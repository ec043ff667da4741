"""Open a URL with FFmpeg's low-latency options and say what is in it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import av
import av.error
import av.logging
import msgspec
from av.codec.context import CodecContext, Flags, ThreadType
from av.codec.hwaccel import HWAccel
from av.stream import Discard, Disposition

from livefuse.aac import build_config
from livefuse.ingest.diagnose import create_codec_error, create_no_video_error
from livefuse.ingest.dial import Dial
from livefuse.ingest.ratio import to_fraction
from livefuse.ingest.timeline import to_ticks
from livefuse.packet import AudioInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.codeccontext import VideoCodecContext
    from av.video.stream import VideoStream

    from livefuse.config import IngestConfig
    from livefuse.ingest.ratio import Ratio

# FFmpeg prints URLs with their passwords and keys.
av.logging.set_level(None)

_TLS_SCHEMES: Final = frozenset({"https", "rtmps", "rtsps", "hls"})
_PACED_SCHEMES: Final = frozenset({"http", "https", "hls"})
_RTSP_OPTIONS: Final = {"max_delay": "200000"}
_UDP_OPTIONS: Final = {"overrun_nonfatal": "1", "fifo_size": "50000"}
_LATE_PICTURE_SCHEMES: Final = frozenset({"rtmp", "rtmps"})
_PATIENT_MS: Final = 4000
_MAX_FPS: Final = 240
_DEFAULT_FPS: Final = 30.0
_HEADED: Final = frozenset({"h264", "hevc"})
"""Codecs whose parameter sets say the size; a renewed decoder is not to believe the old one."""


@dataclass(slots=True)
class Source:
    """An opened input: how to decode its pictures, what sound there is, how it behaves.

    `packets` tells of each whether it is of the pictures. `is_bursty` means that it comes in pieces
    of seconds (HLS, a file over HTTP), so it has to be paced by its time stamps. `is_finite` means
    that its end is an end, not a loss. `opened_ns` is of recordings only: when it was opened, from
    the recording's start.
    """

    url: str
    decoder: VideoCodecContext
    time_base: Ratio | None
    audio: AudioInfo | None
    fps: float
    aspect: Fraction | None
    decoder_name: str
    packets: Iterator[tuple[bool, Packet[Stream]]]
    close: Callable[[], None]
    is_bursty: bool = False
    is_finite: bool = False
    hardware: HWAccel | None = None
    opened_ns: int = 0


def open_source(
    target: object,
    config: IngestConfig,
    *,
    is_live: bool,
    url: str,
    hardware: HWAccel | None = None,
    frame_threads: bool = False,
) -> Source:
    """Open `target` (a dial, or a file object) and choose its streams; `url` is for messages.

    Blocks for as long as FFmpeg does: up to twice `open_timeout_ms`.

    Raises:
        av.error.FFmpegError, OSError: it cannot be opened.
        IngestUnsupportedError: there is no video, or no decoder for it.
    """
    container = _open(target, config, url, is_live=is_live, hardware=hardware)
    if is_live and get_scheme(url) in _LATE_PICTURE_SCHEMES and _choose_video(container) is None:
        # Its header names no streams: where sound comes at once, pictures wait for a keyframe.
        container.close()
        patient = msgspec.structs.replace(
            config, analyze_ms=_PATIENT_MS, probe_bytes=8 * config.probe_bytes
        )
        container = _open(target, patient, url, is_live=True, hardware=hardware)
    try:
        source = _describe(container, config, url, is_live=is_live, frame_threads=frame_threads)
    except BaseException:
        container.close()
        raise
    source.hardware = hardware
    return source


def _open(
    target: object, config: IngestConfig, url: str, *, is_live: bool, hardware: HWAccel | None
) -> InputContainer:
    scheme = get_scheme(url)
    address, options = (
        (target.address, target.options) if isinstance(target, Dial) else (target, {})
    )
    return av.open(
        address,
        mode="r",
        format="mpegts" if scheme == "srt" else None,
        options={**build_options(scheme, config, is_live=is_live), **options},
        timeout=(config.open_timeout_ms / 1000, config.read_timeout_ms / 1000),
        hwaccel=hardware,
    )


def get_scheme(url: str) -> str:
    """Return the scheme in lower case; `file` for a path."""
    return url.partition("://")[0].lower() if "://" in url else "file"


def build_options(scheme: str, config: IngestConfig, *, is_live: bool) -> dict[str, str]:
    """Return FFmpeg's options for a URL of `scheme`.

    What probing reads is kept, not thrown away as `fflags=nobuffer` does: it may hold the only
    keyframe for seconds. The backlog of half a second is decoded at once and costs no latency.
    """
    if not is_live:
        return {}
    options = {
        "probesize": str(config.probe_bytes),
        "analyzeduration": str(config.analyze_ms * 1000),
        "fpsprobesize": "0",
    }
    if scheme in {"rtsp", "rtsps"}:
        options |= {"rtsp_transport": config.rtsp_transport} | _RTSP_OPTIONS
    elif scheme == "udp":
        options |= _UDP_OPTIONS
    elif scheme in {"rtmp", "rtmps"}:
        options["rtmp_live"] = "live"
    if scheme in _TLS_SCHEMES:
        # FFmpeg's own default changed between the versions that PyAV 18 and 19 carry.
        authorities = config.ca_file or ssl.get_default_verify_paths().cafile
        options |= {"tls_verify": str(int(config.tls_verify))}
        options |= {"ca_file": authorities} if authorities and config.tls_verify else {}
    return options


def is_lossy(scheme: str, config: IngestConfig) -> bool:
    """Say whether packets of a URL of `scheme` may be lost on the way.

    Such pictures are decoded by one thread: with more, FFmpeg does not mark those that were hit.
    """
    return scheme in {"udp", "srt"} or (
        scheme in {"rtsp", "rtsps"} and config.rtsp_transport == "udp"
    )


def find_hardware(config: IngestConfig) -> HWAccel | None:
    """Return a hardware decoder worth trying, or None; looks for device files only."""
    if config.hardware == "none":
        return None
    for device, kind in (("/dev/nvidiactl", "cuda"), ("/dev/dri/renderD128", "vaapi")):
        if Path(device).exists():
            return HWAccel(kind, allow_software_fallback=True)
    return None


def _describe(
    container: InputContainer, config: IngestConfig, url: str, *, is_live: bool, frame_threads: bool
) -> Source:
    video = _choose_video(container)
    if video is None:
        raise create_no_video_error(url)
    decoder = cast("VideoCodecContext | None", video.codec_context)
    if decoder is None:
        raise create_codec_error(url, "")
    set_up_decoder(decoder, config, is_live=is_live, frame_threads=frame_threads)
    if is_lossy(get_scheme(url), config):
        decoder.thread_count = 1
    audio = container.streams.best("audio", related=video) if config.audio else None
    for stream in container.streams:
        if stream is not video and stream is not audio:
            stream.discard = Discard.all
    scheme = get_scheme(url)
    duration = container.duration or 0
    is_finite = not is_live or (scheme in _PACED_SCHEMES and duration > 0)
    return Source(
        url=url,
        decoder=decoder,
        time_base=video.time_base or None,
        audio=describe_sound(audio.codec_context) if audio is not None else None,
        fps=read_fps(video.average_rate, video.guessed_rate),
        aspect=to_fraction(decoder.sample_aspect_ratio),
        decoder_name=decoder.name,
        is_bursty=scheme in _PACED_SCHEMES and (duration > 0 or "hls" in container.format.name),
        is_finite=is_finite,
        packets=_iter_packets(container, video, audio),
        close=container.close,
    )


def _iter_packets(
    container: InputContainer, video: VideoStream, audio: Stream | None
) -> Iterator[tuple[bool, Packet[Stream]]]:
    index = video.index
    for packet in container.demux([video] if audio is None else [video, audio]):
        if packet.size:
            yield packet.stream_index == index, packet


def _choose_video(container: InputContainer) -> VideoStream | None:
    """Return the best video stream that is not the cover picture of a song."""
    moving = [
        stream
        for stream in container.streams.video
        if not stream.disposition & Disposition.attached_pic
    ]
    best = container.streams.best("video")
    return best if best in moving else next(iter(moving), None)


class NewExtradata(NamedTuple):
    """Put on a packet (`opaque`) by ways in that cannot give it side data."""

    extradata: bytes


def read_new_extradata(packet: Packet[Stream]) -> bytes | None:
    """Return the parameter sets that go with `packet` where they are new, else None."""
    if packet.has_sidedata("new_extradata"):
        return bytes(packet.get_sidedata("new_extradata"))
    return packet.opaque.extradata if isinstance(packet.opaque, NewExtradata) else None


def renew_decoder(source: Source, extradata: bytes | None = None) -> VideoCodecContext:
    """Return a decoder set up as that of `source`, with nothing of its past.

    `extradata` are its parameter sets, if they are not those of the old one.
    """
    old = source.decoder
    new = cast("VideoCodecContext", CodecContext.create(old.codec, "r", source.hardware))
    new.extradata = extradata if extradata is not None else old.extradata
    if old.codec.canonical_name not in _HEADED:
        new.width, new.height, new.pix_fmt = old.width, old.height, old.pix_fmt
    new.thread_count, new.thread_type, new.flags = old.thread_count, old.thread_type, old.flags
    return new


def set_up_decoder(
    decoder: VideoCodecContext, config: IngestConfig, *, is_live: bool, frame_threads: bool = False
) -> None:
    """Choose delay or speed: a live picture is wanted at once, those of a file soon."""
    decoder.thread_count = config.decode_threads
    if is_live:
        decoder.flags |= Flags.low_delay
    decoder.thread_type = ThreadType.FRAME if frame_threads else ThreadType.SLICE


def describe_sound(codec: CodecContext | None) -> AudioInfo | None:
    """Return what the outputs have to know of an audio stream; None when it cannot be named."""
    rate, channels = getattr(codec, "sample_rate", 0), getattr(codec, "channels", 0)
    if codec is None or not rate or not channels:
        return None
    name, extradata = codec.codec.canonical_name, codec.extradata or b""
    if name == "aac" and not extradata:
        extradata = build_config(rate, channels)
    return AudioInfo(name, rate, channels, extradata)


def read_fps(*rates: Ratio | None) -> float:
    """Return the first believable rate, else 30."""
    for rate in rates:
        if rate and 1 <= float(rate) <= _MAX_FPS:
            return float(rate)
    return _DEFAULT_FPS


def to_step(fps: float) -> int:
    """Return the usual distance of two pictures in 1/90000 s."""
    return to_ticks(1, 1 / Fraction(fps).limit_denominator(100_000))
