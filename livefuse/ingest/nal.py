"""H.264 and HEVC as bytes: which parameter sets a packet brings, and whether a picture is missing.

FFmpeg conceals a picture of H.264 that never came without a word, and the pictures after it are
smeared; the number that each carries (`frame_num`, ITU-T H.264, 7.4.3) tells. Pure; reads no
further than the first slice's header, some 20 us a packet. Layouts: ITU-T H.264, 7.3.2.1.1 and
7.3.3; ISO/IEC 14496-15, 5.3.3 (avcC) and 8.3.3 (hvcC).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_H264_SPS, _H264_IDR, _H264_SLICES = 7, 5, (1, 2, 5)
_HEVC_VPS, _HEVC_SPS, _HEVC_FIRST_OTHER = 32, 33, 32
_HEVC_RANDOM_ACCESS: Final = range(16, 24)
_AVCC_HEADER, _HVCC_HEADER = 5, 22
_HEADER_BYTES: Final = 64
_CHROMA_444: Final = 3
_HIGH_PROFILES: Final = frozenset({44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244})
_MAX_FALSE_GAPS: Final = 8


class Finding(NamedTuple):
    """What a packet tells before it is decoded.

    `is_entry`: a decoder that knows the parameter sets can start here. `is_whole_entry`: so can one
    that knows nothing but the extradata of the beginning. `has_new_parameters`: an SPS (or VPS) is
    not what it was. `is_gap`: a picture that others refer to is missing before this one.
    """

    is_entry: bool = False
    is_whole_entry: bool = False
    has_new_parameters: bool = False
    is_gap: bool = False


class _Sps(NamedTuple):
    frame_num_bits: int
    may_have_gaps: bool
    has_colour_planes: bool


class StreamWatch:
    """Follows one connection's pictures, packet by packet in decoding order."""

    def __init__(self, codec: str, extradata: bytes) -> None:
        """`codec` is FFmpeg's name; for any but h264 and hevc nothing is ever found."""
        self._codec = codec
        self._sets: dict[bytes, bytes] = {}
        self._length_bytes = 0
        self._sps: _Sps | None = None
        self._last_reference: int | None = None
        self._false_gaps = 0
        self._has_current_extradata = bool(extradata)
        self.take_extradata(extradata)

    def take_extradata(self, extradata: bytes) -> bool:
        """Take parameter sets from outside the packets; return whether they are other ones."""
        self._length_bytes, units = read_parameter_sets(self._codec, extradata)
        changes = [self._take_parameters(unit) for unit in units]
        self._has_current_extradata = bool(units)
        return any(changes)

    def look_at(self, data: bytes) -> Finding:
        """Return what the next packet tells."""
        if self._codec not in ("h264", "hevc") or not data:
            return Finding()
        is_h264, has_new, has_any = self._codec == "h264", False, False
        for unit in _iter_units(data, self._length_bytes):
            kind = _get_kind(self._codec, unit)
            has_new = self._take_parameters(unit) or has_new
            has_any = has_any or kind == (_H264_SPS if is_h264 else _HEVC_SPS)
            if kind in _H264_SLICES if is_h264 else 0 <= kind < _HEVC_FIRST_OTHER:
                self._has_current_extradata = self._has_current_extradata and not has_new
                is_entry = kind == _H264_IDR if is_h264 else kind in _HEVC_RANDOM_ACCESS
                return Finding(
                    is_entry,
                    is_entry and (has_any or self._has_current_extradata),
                    has_new,
                    is_h264 and self._is_gap(unit, is_entry),
                )
        self._has_current_extradata = self._has_current_extradata and not has_new
        return Finding(has_new_parameters=has_new)

    def _take_parameters(self, unit: bytes) -> bool:
        """Keep an SPS or VPS; return whether one of its number was known and was another."""
        kind = _get_kind(self._codec, unit)
        if self._codec == "h264" and kind == _H264_SPS:
            self._sps = _read_sps(unit)
            # Its number stands behind profile, constraints and level.
            name = b"7%d" % _Bits(unit[4:12]).read_ue()
        elif self._codec == "hevc" and kind in (_HEVC_VPS, _HEVC_SPS):
            name = b"%d" % kind
        else:
            return False
        unit = unit.rstrip(b"\0")
        before = self._sets.get(name)
        self._sets[name] = unit
        return before is not None and before != unit

    def _is_gap(self, unit: bytes, is_idr: bool) -> bool:  # noqa: FBT001 - private, one caller
        number = 0 if is_idr else self._read_frame_num(unit)
        last, sps = self._last_reference, self._sps
        if number is None or sps is None:
            return False
        if unit[0] >> 5 & 3:
            self._last_reference = number
        # Equal numbers are the two fields of one picture.
        expected = (last, (last + 1) % (1 << sps.frame_num_bits)) if last is not None else ()
        if is_idr or last is None or sps.may_have_gaps or number in expected:
            self._false_gaps = 0 if self._false_gaps < _MAX_FALSE_GAPS else self._false_gaps
            return False
        # One gap after the other: this source does not count as the standard says.
        self._false_gaps += 1
        return self._false_gaps < _MAX_FALSE_GAPS

    def _read_frame_num(self, unit: bytes) -> int | None:
        if self._sps is None:
            return None
        bits = _Bits(unit[1:_HEADER_BYTES])
        for _ in range(3):  # first macroblock, type of slice, picture parameter set
            bits.read_ue()
        if self._sps.has_colour_planes:
            bits.read(2)
        return bits.read(self._sps.frame_num_bits)


def _get_kind(codec: str, unit: bytes) -> int:
    if not unit:
        return -1
    return unit[0] & 31 if codec == "h264" else unit[0] >> 1 & 63


def _iter_units(data: bytes, length_bytes: int) -> Iterator[bytes]:
    """Yield NAL units: behind start codes, or behind their lengths as in MP4 and FLV."""
    if not _has_lengths(data, length_bytes):
        start = data.find(b"\0\0\1")
        while start >= 0:
            end = data.find(b"\0\0\1", start + 3)
            yield data[start + 3 : end if end >= 0 else len(data)]
            start = end
        return
    at = 0
    while at + length_bytes < len(data):
        size = int.from_bytes(data[at : at + length_bytes], "big")
        at += length_bytes
        yield data[at : at + size]
        at += size


def _has_lengths(data: bytes, length_bytes: int) -> bool:
    """Say whether lengths lead through `data` to its end; a short one looks like a start code."""
    at = 0
    while length_bytes and at < len(data):
        at += length_bytes + int.from_bytes(data[at : at + length_bytes], "big")
    return bool(length_bytes) and at == len(data)


def read_parameter_sets(codec: str, extradata: bytes) -> tuple[int, list[bytes]]:
    """Return how many bytes a length has (0: start codes are used), and the parameter sets.

    What is cut off gives sets that are cut off.
    """
    if codec not in ("h264", "hevc") or not extradata:
        return 0, []
    if extradata[0] != 1:
        return 0, list(_iter_units(extradata, 0))
    if codec == "h264":
        return _read_avcc(extradata)
    return _read_hvcc(extradata)


def _read_avcc(data: bytes) -> tuple[int, list[bytes]]:
    units, at = [], _AVCC_HEADER
    for mask in (31, 255):  # SPS, PPS
        count = data[at] & mask if len(data) > at else 0
        at += 1
        for _ in range(count):
            size = int.from_bytes(data[at : at + 2], "big")
            units.append(data[at + 2 : at + 2 + size])
            at += 2 + size
    return (data[_AVCC_HEADER - 1] & 3) + 1 if len(data) >= _AVCC_HEADER else 4, units


def _read_hvcc(data: bytes) -> tuple[int, list[bytes]]:
    if len(data) <= _HVCC_HEADER:
        return 4, []
    units, at = [], _HVCC_HEADER + 1
    for _ in range(data[_HVCC_HEADER]):
        amount = int.from_bytes(data[at + 1 : at + 3], "big")
        at += 3
        for _ in range(min(amount, len(data))):
            size = int.from_bytes(data[at : at + 2], "big")
            units.append(data[at + 2 : at + 2 + size])
            at += 2 + size
    return (data[_HVCC_HEADER - 1] & 3) + 1, units


def _read_sps(unit: bytes) -> _Sps:
    bits = _Bits(unit[1:])
    profile = bits.read(8)
    bits.read(16)
    bits.read_ue()
    has_colour_planes = False
    if profile in _HIGH_PROFILES:
        chroma = bits.read_ue()
        has_colour_planes = chroma == _CHROMA_444 and bool(bits.read(1))
        bits.read_ue()
        bits.read_ue()
        bits.read(1)
        if bits.read(1):
            _skip_scaling_lists(bits, 12 if chroma == _CHROMA_444 else 8)
    frame_num_bits = bits.read_ue() + 4
    order = bits.read_ue()
    if order == 0:
        bits.read_ue()
    elif order == 1:
        bits.read(1)
        bits.read_ue()
        bits.read_ue()
        for _ in range(min(bits.read_ue(), 255)):
            bits.read_ue()
    bits.read_ue()
    return _Sps(frame_num_bits, bool(bits.read(1)), has_colour_planes)


def _skip_scaling_lists(bits: _Bits, lists: int) -> None:
    for index in range(lists):
        if not bits.read(1):
            continue
        last = following = 8
        for _ in range(16 if index < 6 else 64):  # noqa: PLR2004 - six lists are of 4x4
            if following:
                code = bits.read_ue()
                step = (code + 1) // 2 if code & 1 else -(code // 2)
                following = (last + step) % 256
            last = following or last


class _Bits:
    """Reads bits from the left; the bytes that keep start codes apart are taken out (7.4.1.1)."""

    def __init__(self, data: bytes) -> None:
        data = data.replace(b"\0\0\3", b"\0\0")
        self._value = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def read(self, amount: int) -> int:
        """Return the next `amount` bits; behind the end they are 0."""
        self._left -= amount
        if self._left >= 0:
            return self._value >> self._left & ((1 << amount) - 1)
        return 0

    def read_ue(self) -> int:
        """Return an unsigned Exp-Golomb number (9.1); 0 behind the end."""
        zeros = 0
        while self._left > 0 and not self.read(1):
            zeros += 1
        return (1 << zeros) - 1 + self.read(zeros)
