"""MPEG transport stream as bytes, packet by packet, for players that look in by HTTP and for files.

Source: ISO/IEC 13818-1 (PAT, PMT, PES, adaptation field). As in `flv_writer`, a packet is out at
once: no stream ever waits for the other. Times stay in 1/90000 s, exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.aac import AacConfig, build_adts_header, parse_config
from livefuse.publish.h264 import ACCESS_UNIT_DELIMITER, get_nal_type, split_nals
from livefuse.publish.timeline import Timeline

if TYPE_CHECKING:
    from livefuse.packet import Packet, StreamsInfo

_PAYLOAD_BYTES: Final = 184
_PAT_PID, _PMT_PID, _VIDEO_PID, _AUDIO_PID = 0, 0x1000, 0x100, 0x101
_TABLES_EVERY_TICKS: Final = 45_000
# The clock reference runs this far behind, so that a decoder has a picture before its time.
_LEAD_TICKS: Final = 9_000
_TIME_MASK: Final = (1 << 33) - 1
_DELIMITER: Final = b"\x00\x00\x00\x01\x09\xf0"
_AUDIO_PES_BYTES: Final = 8  # flags, header length and one time stamp
_CRC_POLYNOMIAL: Final = 0x04C11DB7


class TsWriter:
    """Turns packets into transport stream packets. One thread."""

    def __init__(self, streams: StreamsInfo) -> None:
        self._counters: dict[int, int] = {}
        self._timeline = Timeline(ticks_per_unit=1)
        self._aac = _find_aac(streams)
        self._tables = _build_tables(with_audio=streams.audio is not None)
        self._tables_dts: int | None = None

    def build_header(self) -> bytes:
        """Return PAT and PMT."""
        return self._write_tables()

    def write(self, packet: Packet) -> bytes:
        """Return `packet` as transport packets; PAT and PMT go before each keyframe."""
        dts = self._timeline.place(packet.kind, packet.dts)
        if dts is None:
            return b""
        if packet.kind == "audio":
            return self._write_audio(packet.data, dts)
        tables = b""
        age = _TABLES_EVERY_TICKS if self._tables_dts is None else dts - self._tables_dts
        if packet.is_keyframe or age >= _TABLES_EVERY_TICKS:
            self._tables_dts = dts
            tables = self._write_tables()
        return tables + self._write_video(packet, dts)

    def _write_video(self, packet: Packet, dts: int) -> bytes:
        pts = max(packet.pts, dts)
        nals = split_nals(packet.data[:16])
        delimited = bool(nals) and get_nal_type(nals[0]) == ACCESS_UNIT_DELIMITER
        times = _encode_time(2 if pts == dts else 3, pts + _LEAD_TICKS)
        if pts != dts:
            times += _encode_time(1, dts + _LEAD_TICKS)
        flags = 0x80 if pts == dts else 0xC0
        head = b"\x00\x00\x01\xe0\x00\x00\x84" + bytes((flags, len(times))) + times
        pes = b"".join((head, b"" if delimited else _DELIMITER, packet.data))
        return self._packetize(_VIDEO_PID, pes, _encode_reference(dts, packet.is_keyframe))

    def _write_audio(self, unit: bytes, dts: int) -> bytes:
        if self._aac is None:
            return b""
        body = build_adts_header(self._aac, len(unit)) + unit
        head = b"\x00\x00\x01\xc0" + (len(body) + _AUDIO_PES_BYTES).to_bytes(2, "big")
        pes = head + b"\x84\x80\x05" + _encode_time(2, dts + _LEAD_TICKS) + body
        return self._packetize(_AUDIO_PID, pes, b"\x40")

    def _write_tables(self) -> bytes:
        return b"".join(
            _build_packet_head(pid, self._next_counter(pid), start=True, adapted=False) + table
            for pid, table in self._tables
        )

    def _packetize(self, pid: int, pes: bytes, adaptation: bytes) -> bytes:
        """Cut `pes` into packets; `adaptation` (flags and fields) goes into the first."""
        parts: list[bytes] = []
        at, field = 0, adaptation
        while at < len(pes):
            left = len(pes) - at
            size = min(left, _PAYLOAD_BYTES - (1 + len(field) if field else 0))
            stuffing = _PAYLOAD_BYTES - size - (1 + len(field) if field else 0)
            adapted = bool(field) or stuffing > 0
            head = _build_packet_head(pid, self._next_counter(pid), start=at == 0, adapted=adapted)
            parts += (head, _build_field(field, stuffing), pes[at : at + size])
            at, field = at + size, b""
        return b"".join(parts)

    def _next_counter(self, pid: int) -> int:
        counter = self._counters.get(pid, 0)
        self._counters[pid] = (counter + 1) & 15
        return counter


def _find_aac(streams: StreamsInfo) -> AacConfig | None:
    return parse_config(streams.audio.extradata) if streams.audio is not None else None


def _build_packet_head(pid: int, counter: int, *, start: bool, adapted: bool) -> bytes:
    control = 0x30 if adapted else 0x10
    return bytes((0x47, (0x40 if start else 0) | pid >> 8, pid & 0xFF, control | counter))


def _build_field(field: bytes, stuffing: int) -> bytes:
    """Return the adaptation field that carries `field` and takes `stuffing` bytes more."""
    if field:
        return bytes((len(field) + stuffing,)) + field + b"\xff" * stuffing
    if stuffing <= 1:
        return b"\x00" * stuffing
    return bytes((stuffing - 1, 0)) + b"\xff" * (stuffing - 2)


def _encode_reference(dts: int, is_keyframe: bool) -> bytes:  # noqa: FBT001 - a fact, not a mode
    """Return adaptation flags (clock reference, random access) and the clock reference."""
    flags = 0x50 if is_keyframe else 0x10
    return bytes((flags,)) + ((dts & _TIME_MASK) << 15 | 0x7E00).to_bytes(6, "big")


def _encode_time(marker: int, ticks: int) -> bytes:
    ticks &= _TIME_MASK
    return bytes(
        (
            marker << 4 | ticks >> 29 & 0x0E | 1,
            ticks >> 22 & 0xFF,
            ticks >> 14 & 0xFE | 1,
            ticks >> 7 & 0xFF,
            ticks << 1 & 0xFE | 1,
        )
    )


def _build_tables(*, with_audio: bool) -> list[tuple[int, bytes]]:
    pat = b"\x00\x01\xc1\x00\x00" + b"\x00\x01" + (0xE000 | _PMT_PID).to_bytes(2, "big")
    pmt = b"\x00\x01\xc1\x00\x00" + (0xE000 | _VIDEO_PID).to_bytes(2, "big") + b"\xf0\x00"
    kinds = [(0x1B, _VIDEO_PID)] + ([(0x0F, _AUDIO_PID)] if with_audio else [])
    for stream_type, pid in kinds:
        pmt += bytes((stream_type,)) + (0xE000 | pid).to_bytes(2, "big") + b"\xf0\x00"
    return [(_PAT_PID, _build_section(0, pat)), (_PMT_PID, _build_section(2, pmt))]


def _build_section(table_id: int, body: bytes) -> bytes:
    """Return a table as the payload of one packet, filled up."""
    section = bytes((table_id,)) + (0xB000 | len(body) + 4).to_bytes(2, "big") + body
    payload = b"\x00" + section + _compute_crc(section).to_bytes(4, "big")
    return payload.ljust(_PAYLOAD_BYTES, b"\xff")


def _compute_crc(data: bytes) -> int:
    """CRC-32/MPEG-2."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (_CRC_POLYNOMIAL if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc
