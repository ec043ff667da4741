"""Encoded media as values: what streams there are, packets, and both as bytes on a pipe.

All times are ints in 1/90000 s (`frame.TIME_BASE_HZ`) on the job's line. The pipe form carries
packets between a worker and its children (an RTMP target, an RTMP listener).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["video", "audio"]


class VideoInfo(msgspec.Struct, frozen=True):
    """An encoded video stream. `extradata` is FFmpeg's (avcC or Annex B parameter sets)."""

    codec: str
    width: int
    height: int
    fps_num: int = 30
    fps_den: int = 1
    extradata: bytes = b""
    matrix: str = "bt709"
    full_range: bool = False


class AudioInfo(msgspec.Struct, frozen=True):
    """An encoded audio stream. `extradata` is the codec's configuration (AudioSpecificConfig)."""

    codec: str
    sample_rate_hz: int
    channels: int
    extradata: bytes = b""


class StreamsInfo(msgspec.Struct, frozen=True):
    """What a target is told before the first packet."""

    video: VideoInfo | None
    audio: AudioInfo | None


@dataclass(slots=True, frozen=True)
class Packet:
    """One encoded picture or piece of sound; immutable, shared by all outputs."""

    kind: Kind
    data: bytes
    pts: int
    dts: int
    duration: int = 0
    is_keyframe: bool = True
    arrival_ns: int = 0


# kind/flags, pts, dts, duration, size: little endian, as both ends are this machine.
_HEADER: Final = struct.Struct("<BqqIi")
_VIDEO, _KEYFRAME, _INFO = 1, 2, 4
MAX_PACKET_BYTES: Final = 64 << 20


def encode_packet(packet: Packet) -> bytes:
    """Return `packet` as bytes for a pipe."""
    flags = (_VIDEO if packet.kind == "video" else 0) | (_KEYFRAME if packet.is_keyframe else 0)
    head = _HEADER.pack(flags, packet.pts, packet.dts, packet.duration, len(packet.data))
    return head + packet.data


def encode_info(info: msgspec.Struct) -> bytes:
    """Return a description (any msgspec struct) as bytes for a pipe."""
    data = msgspec.msgpack.encode(info)
    return _HEADER.pack(_INFO, 0, 0, 0, len(data)) + data


def iter_messages(stream: IO[bytes]) -> Iterator[Packet | bytes]:
    """Yield packets, and descriptions as raw msgpack bytes, until `stream` ends.

    Raises:
        ValueError: the bytes are not of this form.
    """
    while head := stream.read(_HEADER.size):
        if len(head) < _HEADER.size:
            return
        flags, pts, dts, duration, size = _HEADER.unpack(head)
        if not 0 <= size <= MAX_PACKET_BYTES:
            raise ValueError(f"a message of {size} bytes is not believable")
        data = stream.read(size)
        if len(data) < size:
            return
        if flags & _INFO:
            yield data
        else:
            kind: Kind = "video" if flags & _VIDEO else "audio"
            yield Packet(kind, data, pts, dts, duration, bool(flags & _KEYFRAME))
