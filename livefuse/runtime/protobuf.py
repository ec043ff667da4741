"""Protobuf's wire format, as far as an ONNX file needs it: fields, their numbers, where they lie.

Encoding as in protobuf.dev's "Encoding": a key of number and kind, then a varint, 4, 8 or a told
length of bytes. Nothing is copied; the file may be mapped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BITS: Final = 63


class Field(NamedTuple):
    """A field: its number, its value (or 0), and where its bytes lie (start == end: none)."""

    number: int
    value: int
    start: int
    end: int


def walk_fields(data: mmap.mmap, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in `data[start:end]`, in their order."""
    while start < end:
        key, start = _read_varint(data, start)
        number, kind = key >> 3, key & 7
        value, begin = 0, start
        if kind == _VARINT:
            value, start = _read_varint(data, start)
            begin = start
        elif kind == _LENGTH:
            length, begin = _read_varint(data, start)
            start = begin + length
        elif kind in (_FIXED64, _FIXED32):
            start += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("not an ONNX file")
        if start > end:
            raise ValueError("truncated")
        yield Field(number, value, begin, start)


def _read_varint(data: mmap.mmap, start: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the top bit says that more follow
            return value, start
        shift += 7
        if shift > _MAX_VARINT_BITS:
            raise ValueError("not an ONNX file")


def read_numbers(data: mmap.mmap, field: Field) -> list[int]:
    """Return a repeated number's values: one for each field, or all packed in one."""
    if field.start == field.end:
        return [field.value]
    numbers, start = [], field.start
    while start < field.end:
        number, start = _read_varint(data, start)
        numbers.append(number)
    return numbers
