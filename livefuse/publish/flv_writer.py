"""FLV as bytes, packet by packet: what RTMP carries and what HTTP-FLV players read.

Source: Adobe Flash Video File Format Specification 10.1. Written here rather than by FFmpeg because
its interleaving holds a packet until every stream has one: a picture would wait for sound.
Nothing waits here; each packet is a tag at once.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from livefuse.publish.container_mark import find_container_mark
from livefuse.publish.h264 import build_avcc, strip_to_lengths
from livefuse.publish.timeline import Timeline

if TYPE_CHECKING:
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.publish.container_mark import ContainerMark

_AUDIO_TAG, _VIDEO_TAG, _SCRIPT_TAG = 8, 9, 18
_TICKS_PER_MS: Final = 90
_AVC_HEADER, _AVC_UNITS = b"\x00\x00\x00\x00", b"\x01"
# AAC is always marked 44 kHz, 16 bit, stereo; its configuration says what it is.
_AAC_HEADER, _AAC_UNIT = b"\xaf\x00", b"\xaf\x01"
_TIME_MASK: Final = 0xFFFFFFFF


class FlvWriter:
    """Turns packets into FLV tags. DTS strictly increase in ms for each stream. One thread."""

    def __init__(self, streams: StreamsInfo) -> None:
        self._streams = streams
        self._timeline = Timeline(_TICKS_PER_MS)
        self._mark: ContainerMark | None = None

    def build_header(self) -> bytes:
        """Return the file header, the metadata and the codecs' configurations.

        Raises:
            ValueError: the video's parameter sets are missing.
        """
        video, audio = self._streams.video, self._streams.audio
        flags = (1 if video else 0) | (4 if audio else 0)
        parts = [b"FLV\x01", bytes((flags,)), b"\x00\x00\x00\x09\x00\x00\x00\x00"]
        parts.append(_build_tag(_SCRIPT_TAG, 0, _build_metadata(self._streams, self._mark)))
        if video is not None:
            record = build_avcc(video.extradata)
            parts.append(_build_tag(_VIDEO_TAG, 0, b"\x17" + _AVC_HEADER + record))
        if audio is not None:
            parts.append(_build_tag(_AUDIO_TAG, 0, _AAC_HEADER + audio.extradata))
        return b"".join(parts)

    def write(self, packet: Packet) -> bytes:
        """Return `packet` as a tag; nothing when it lies before the line's start.

        Before the first keyframe of generated pictures goes new metadata, which says so.
        """
        dts_ms = self._timeline.place(packet.kind, packet.dts)
        if dts_ms is None:
            return b""
        if packet.kind == "audio":
            return _build_tag(_AUDIO_TAG, dts_ms, _AAC_UNIT + packet.data)
        offset_ms = max((packet.pts - packet.dts) // _TICKS_PER_MS, 0)
        head = (b"\x17" if packet.is_keyframe else b"\x27") + _AVC_UNITS
        body = head + offset_ms.to_bytes(3, "big") + strip_to_lengths(packet.data)
        return self._tell_mark(packet) + _build_tag(_VIDEO_TAG, dts_ms, body)

    def _tell_mark(self, packet: Packet) -> bytes:
        if self._mark is not None or (mark := find_container_mark(packet)) is None:
            return b""
        self._mark = mark
        # At time 0, wherever it stands: at any other FFmpeg makes a stream of subtitles of it.
        return _build_tag(_SCRIPT_TAG, 0, _build_metadata(self._streams, mark))


def _build_tag(kind: int, time_ms: int, body: bytes) -> bytes:
    time_ms &= _TIME_MASK
    head = (kind << 24 | len(body)).to_bytes(4, "big")
    time = (time_ms & 0xFFFFFF).to_bytes(3, "big") + (time_ms >> 24).to_bytes(1, "big")
    return b"".join((head, time, b"\x00\x00\x00", body, (len(body) + 11).to_bytes(4, "big")))


def _build_metadata(streams: StreamsInfo, mark: ContainerMark | None) -> bytes:
    values = {"duration": _amf_number(0)}
    video, audio = streams.video, streams.audio
    if video is not None:
        values |= {
            "width": _amf_number(video.width),
            "height": _amf_number(video.height),
            "framerate": _amf_number(video.fps_num / video.fps_den),
            "videocodecid": _amf_number(7),
        }
    if audio is not None:
        values |= {
            "audiocodecid": _amf_number(10),
            "audiosamplerate": _amf_number(audio.sample_rate_hz),
            "audiosamplesize": _amf_number(16),
            "stereo": b"\x01\x01" if audio.channels > 1 else b"\x01\x00",
        }
    texts = {"encoder": "livefuse"} | (mark.build_fields() if mark is not None else {})
    values |= {name: b"\x02" + _amf_string(text) for name, text in texts.items()}
    body = bytearray(b"\x02" + _amf_string("onMetaData"))
    body += b"\x08" + len(values).to_bytes(4, "big")
    for name, value in values.items():
        body += _amf_string(name) + value
    return bytes(body + b"\x00\x00\x09")


def _amf_number(value: float) -> bytes:
    return b"\x00" + struct.pack(">d", value)


def _amf_string(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(2, "big") + data
