"""What of an ONNX file a session does not tell: its last initialiser and its first operators.

Read from the file by walking its protobuf fields, so that the onnx package is not needed to run.
Only lengths are read on the way (the file is mapped, not loaded), so 500 MB take a few
milliseconds. Field numbers are those of onnx.proto3: ModelProto.graph 7; GraphProto.node 1,
initializer 5; NodeProto.op_type 4; TensorProto.dims 1, data_type 2, float_data 4, raw_data 9,
data_location 14.
"""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_GRAPH: Final = 7
_NODE, _INITIALISER, _OP_TYPE = 1, 5, 4
_DIMS, _DATA_TYPE, _FLOAT_DATA, _RAW_DATA, _LOCATION = 1, 2, 4, 9, 14
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_KINDS: Final = {1: np.dtype("<f4"), 10: np.dtype("<f2"), 11: np.dtype("<f8")}
_MAX_VARINT_BITS: Final = 63


class _Field(NamedTuple):
    """A field's number, its value (a number, or 0), and where its bytes lie (start == end: none)."""

    number: int
    value: int
    start: int
    end: int


def read_last_initialiser(path: Path) -> NDArray[np.float32]:
    """Return the last initialiser of the graph in `path`, as float32 in its own shape.

    Raises:
        ModelError: no such file, not an ONNX file, or its last initialiser is not floats.
    """
    with _open(path) as data:
        try:
            last = None
            for field in _walk_graph(data):
                if field.number == _INITIALISER:
                    last = field
            if last is None:
                raise ValueError("no initialiser")
            return _read_tensor(data, last.start, last.end)
        except (ValueError, IndexError) as error:
            raise _refuse(path, error) from None


def list_first_operators(path: Path, count: int) -> tuple[str, ...]:
    """Return the operators (`Sub`, `Conv`, ...) of the first `count` nodes of the graph in `path`.

    Raises:
        ModelError: no such file, or not an ONNX file.
    """
    with _open(path) as data:
        try:
            return tuple(_walk_operators(data, count))
        except (ValueError, IndexError) as error:
            raise _refuse(path, error) from None


@contextmanager
def _open(path: Path) -> Iterator[mmap.mmap]:
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            yield data
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise _refuse(path, error) from None


def _refuse(path: Path, error: Exception) -> ModelError:
    return ModelError(
        f"cannot read the graph of {path} ({error})", hint="run  livefuse models verify"
    )


def _walk_operators(data: mmap.mmap, count: int) -> Iterator[str]:
    found = 0
    for field in _walk_graph(data):
        if field.number != _NODE:
            continue
        for part in _walk(data, field.start, field.end):
            if part.number == _OP_TYPE:
                yield data[part.start : part.end].decode("utf-8")
        found += 1
        if found == count:
            return


def _walk_graph(data: mmap.mmap) -> Iterator[_Field]:
    for field in _walk(data, 0, len(data)):
        if field.number == _GRAPH:
            yield from _walk(data, field.start, field.end)
            return
    raise ValueError("no graph")


def _walk(data: mmap.mmap, start: int, end: int) -> Iterator[_Field]:
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
        yield _Field(number, value, begin, start)


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


def _read_tensor(data: mmap.mmap, start: int, end: int) -> NDArray[np.float32]:
    shape: list[int] = []
    kind = 0
    raw = b""
    for field in _walk(data, start, end):
        if field.number == _DIMS:
            shape += _read_numbers(data, field)
        elif field.number == _DATA_TYPE:
            kind = field.value
        elif field.number in (_RAW_DATA, _FLOAT_DATA):
            raw += data[field.start : field.end]
        elif field.number == _LOCATION and field.value:
            raise ValueError("its weights lie in another file")
    if kind not in _KINDS:
        raise ValueError("its last initialiser is not of floats")
    return np.frombuffer(raw, _KINDS[kind]).reshape(shape).astype(np.float32)


def _read_numbers(data: mmap.mmap, field: _Field) -> list[int]:
    """Return a repeated number's values: one for each field, or all packed in one."""
    if field.start == field.end:
        return [field.value]
    numbers, start = [], field.start
    while start < field.end:
        number, start = _read_varint(data, start)
        numbers.append(number)
    return numbers
