"""H.264 as bytes: Annex B in our packets, length-prefixed NAL units and `avcC` in FLV.

Sources: ITU-T H.264 Annex B (byte stream), ISO/IEC 14496-15 section 5.3.3 (the configuration
record). Pure functions; emulation prevention makes a search for start codes exact.
"""

from __future__ import annotations

from typing import Final

SPS: Final = 7
PPS: Final = 8
ACCESS_UNIT_DELIMITER: Final = 9
_START: Final = b"\x00\x00\x01"
# Profiles whose record carries chroma format and bit depths (14496-15).
_HIGH_PROFILES: Final = frozenset({100, 110, 122, 144})
_MIN_SPS_BYTES: Final = 4
_LENGTH_BYTES: Final = 4


def get_nal_type(nal: bytes) -> int:
    """Return the type of a NAL unit without its start code."""
    return nal[0] & 0x1F


def split_nals(data: bytes) -> list[bytes]:
    """Return the NAL units of an Annex B byte stream, without start codes."""
    head, *units = data.split(_START)
    if head.strip(b"\x00"):
        return []
    # A unit never ends in a zero byte: what is there belongs to the next four-byte start code.
    return [stripped for unit in units if (stripped := unit.rstrip(b"\x00"))]


def split_access_unit(data: bytes) -> list[bytes]:
    """Return the NAL units of an access unit, Annex B or with lengths of four bytes.

    Lengths are believed when they end where the data does: `00 00 01` may begin either.
    """
    nals: list[bytes] = []
    place = 0
    while place + _LENGTH_BYTES <= len(data):
        size = int.from_bytes(data[place : place + _LENGTH_BYTES], "big")
        place += _LENGTH_BYTES
        nals.append(data[place : place + size].rstrip(b"\x00"))
        place += size
    return [nal for nal in nals if nal] if place == len(data) else split_nals(data)


def has_parameter_sets(data: bytes) -> bool:
    """Return whether an Annex B access unit brings its own SPS."""
    return any(get_nal_type(nal) == SPS for nal in split_nals(data))


def strip_to_lengths(data: bytes) -> bytes:
    """Return an Annex B access unit as 4-byte length-prefixed NAL units.

    Parameter sets and delimiters are left out: in FLV the sequence header carries them.
    """
    skipped = (SPS, PPS, ACCESS_UNIT_DELIMITER)
    parts: list[bytes] = []
    for nal in split_nals(data):
        if get_nal_type(nal) not in skipped:
            parts += (len(nal).to_bytes(4, "big"), nal)
    return b"".join(parts)


def build_avcc(extradata: bytes) -> bytes:
    """Return the AVCDecoderConfigurationRecord of Annex B parameter sets (8 bit, 4:2:0).

    A record is returned as it is.

    Raises:
        ValueError: there is no SPS or no PPS.
    """
    if extradata[:1] == b"\x01":
        return extradata
    nals = split_nals(extradata)
    sps = [nal for nal in nals if get_nal_type(nal) == SPS and len(nal) >= _MIN_SPS_BYTES]
    pps = [nal for nal in nals if get_nal_type(nal) == PPS]
    if not sps or not pps:
        raise ValueError("the H.264 configuration has no parameter sets")
    record = bytearray((1, sps[0][1], sps[0][2], sps[0][3], 0xFF, 0xE0 | len(sps)))
    for nal in sps:
        record += len(nal).to_bytes(2, "big") + nal
    record.append(len(pps))
    for nal in pps:
        record += len(nal).to_bytes(2, "big") + nal
    if sps[0][1] in _HIGH_PROFILES:
        record += b"\xfd\xf8\xf8\x00"
    return bytes(record)
