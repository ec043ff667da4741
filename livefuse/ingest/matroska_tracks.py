"""What Matroska calls the codecs, and what it wants to be told of them (RFC 9559, section 27)."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Final, cast

import av
import av.error

from livefuse.aac import build_config
from livefuse.ingest.matroska import encode_element, encode_float, encode_int, encode_text
from livefuse.ingest.nal import read_parameter_sets
from livefuse.ingest.sidecar import pack_annexb

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

    from livefuse.ingest.sidecar import VideoParameters
    from livefuse.packet import AudioInfo

VIDEO_TRACK, AUDIO_TRACK = 1, 2
NAL_CODECS: Final = frozenset({"h264", "hevc"})
_VIDEO_CODECS: Final = {
    "h264": "V_MPEG4/ISO/AVC",
    "hevc": "V_MPEGH/ISO/HEVC",
    "mjpeg": "V_MJPEG",
    "vp8": "V_VP8",
    "vp9": "V_VP9",
    "av1": "V_AV1",
    "mpeg1video": "V_MPEG1",
    "mpeg2video": "V_MPEG2",
    "mpeg4": "V_MPEG4/ISO/ASP",
    "rawvideo": "V_UNCOMPRESSED",
}
_AUDIO_CODECS: Final = {
    "aac": "A_AAC",
    "opus": "A_OPUS",
    "mp3": "A_MPEG/L3",
    "mp2": "A_MPEG/L2",
    "ac3": "A_AC3",
    "eac3": "A_EAC3",
    "pcm_s16le": "A_PCM/INT/LIT",
    "pcm_s16be": "A_PCM/INT/BIG",
    "pcm_mulaw": "A_MS/ACM",
    "pcm_alaw": "A_MS/ACM",
}
_RAW_FORMATS: Final = {
    "yuv420p": b"I420", "nv12": b"NV12", "yuyv422": b"YUY2", "uyvy422": b"UYVY",
}  # fmt: skip
_WAVE_TAGS: Final = {"pcm_alaw": 6, "pcm_mulaw": 7}
_PCM_BITS: Final = 16
_OPUS_RATE_HZ: Final = 48_000
_OPUS_DELAY: Final = 312
_OPUS_PRE_ROLL_NS: Final = 80_000_000
_PRIVATE: Final = 0x63A2


def encode_video_track(video: VideoParameters) -> bytes:
    """Return the TrackEntry of the pictures; empty when Matroska has no name for the codec."""
    name = _VIDEO_CODECS.get(video.codec)
    fourcc = _RAW_FORMATS.get(video.pix_fmt, b"")
    if name is None or (video.codec == "rawvideo" and not fourcc):
        return b""
    width, height = video.width or 2, video.height or 2
    size = encode_int(0xB0, width) + encode_int(0xBA, height)
    if video.aspect is not None and video.aspect[0] != video.aspect[1]:
        shown = max(round(width * video.aspect[0] / video.aspect[1]), 1)
        size += encode_int(0x54B0, shown) + encode_int(0x54BA, height)
    size += encode_element(0x2EB524, fourcc) if video.codec == "rawvideo" else b""
    return _encode_track(VIDEO_TRACK, 1, name, make_private(video), b"", encode_element(0xE0, size))


def encode_audio_track(audio: AudioInfo) -> bytes:
    """Return the TrackEntry of the sound; empty when Matroska has no name for the codec."""
    name = _AUDIO_CODECS.get(audio.codec)
    if name is None:
        return b""
    form = encode_float(0xB5, float(audio.sample_rate_hz)) + encode_int(0x9F, audio.channels)
    form += encode_int(0x6264, _PCM_BITS) if name.startswith("A_PCM") else b""
    delay = b""
    if audio.codec == "opus":
        delay_ns = _OPUS_DELAY * 1_000_000_000 // _OPUS_RATE_HZ
        delay = encode_int(0x56AA, delay_ns) + encode_int(0x56BB, _OPUS_PRE_ROLL_NS)
    return _encode_track(
        AUDIO_TRACK, 2, name, _make_sound_private(audio), delay, encode_element(0xE1, form)
    )


def _encode_track(
    number: int, kind: int, codec: str, private: bytes, delay: bytes, form: bytes
) -> bytes:
    return encode_element(
        0xAE,
        encode_int(0xD7, number),
        encode_int(0x73C5, number),
        encode_int(0x83, kind),
        encode_int(0x9C, 0),
        encode_text(0x22B59C, "und"),
        encode_text(0x86, codec),
        encode_element(_PRIVATE, private) if private else b"",
        delay,
        form,
    )


def make_private(video: VideoParameters) -> bytes:
    """Return the codec's configuration as Matroska wants it; empty where there is none."""
    extradata = video.extradata
    if video.codec in NAL_CODECS:
        return extradata if is_configuration(extradata) else _ask_ffmpeg(video)
    if video.codec == "av1":
        return extradata if extradata[:1] == b"\x81" else b""
    return extradata if video.codec == "mpeg4" else b""


def is_configuration(extradata: bytes) -> bool:
    """Tell avcC and hvcC, after which packets have lengths, from start codes."""
    return extradata[:1] == b"\1"


def list_parameter_sets(codec: str, extradata: bytes) -> bytes:
    """Return the parameter sets in `extradata`, each after its length of four bytes."""
    if not is_configuration(extradata):
        packed = pack_annexb(extradata)
        return packed[0] if packed is not None else b""
    _, units = read_parameter_sets(codec, extradata)
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def _ask_ffmpeg(video: VideoParameters) -> bytes:
    """Have FFmpeg's muxer make avcC or hvcC of parameter sets with start codes."""
    if not video.extradata:
        return b""
    written = io.BytesIO()
    try:
        with (
            av.open(io.BytesIO(b""), format=video.codec) as template,
            av.open(written, "w", format="matroska", options={"live": "1"}) as container,
        ):
            stream = container.add_stream_from_template(template.streams[0], opaque=True)
            context = cast("VideoCodecContext", stream.codec_context)
            context.extradata = video.extradata
            context.width, context.height = video.width or 2, video.height or 2
            context.pix_fmt = video.pix_fmt or "yuv420p"
            container.start_encoding()
    except (av.error.FFmpegError, ValueError):
        return b""
    return _find_private(written.getvalue())


def _find_private(header: bytes) -> bytes:
    at = header.find(_PRIVATE.to_bytes(2, "big"), max(header.find(b"V_MPEG"), 0))
    if at < 0:
        return b""
    at += 2
    length = 9 - header[at].bit_length()
    size = int.from_bytes(header[at : at + length], "big") & ((1 << 7 * length) - 1)
    private = header[at + length : at + length + size]
    return private if is_configuration(private) else b""


def _make_sound_private(audio: AudioInfo) -> bytes:
    if audio.codec == "aac":
        return audio.extradata or build_config(audio.sample_rate_hz, audio.channels)
    if audio.codec == "opus":
        if audio.extradata.startswith(b"OpusHead"):
            return audio.extradata
        return b"OpusHead" + struct.pack(
            "<BBHIHB", 1, audio.channels, _OPUS_DELAY, audio.sample_rate_hz, 0, 0
        )
    if audio.codec in _WAVE_TAGS:
        rate, channels = audio.sample_rate_hz, audio.channels
        tag = _WAVE_TAGS[audio.codec]
        return struct.pack("<HHIIHHH", tag, channels, rate, rate * channels, channels, 8, 0)
    return b""
