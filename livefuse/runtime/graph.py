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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from livefuse.errors import ModelError
from livefuse.runtime.protobuf import Field, read_numbers, walk_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_GRAPH: Final = 7
_NODE, _INITIALISER, _OP_TYPE = 1, 5, 4
_DIMS, _DATA_TYPE, _FLOAT_DATA, _RAW_DATA, _LOCATION = 1, 2, 4, 9, 14
_KINDS: Final[dict[int, np.dtype[np.floating[Any]]]] = {
    1: np.dtype("<f4"),
    10: np.dtype("<f2"),
    11: np.dtype("<f8"),
}


def read_last_initialiser(path: Path) -> NDArray[np.float32]:
    """Return the last initialiser of the graph in `path`, as float32 in its own shape.

    Raises:
        ModelError: no such file, not an ONNX file, or its last initialiser is not floats.
    """
    with map_graph_file(path) as data:
        try:
            last = [field for field in walk_graph(data) if field.number == _INITIALISER][-1]
            return _read_tensor(data, last.start, last.end)
        except (ValueError, IndexError) as error:
            raise _refuse(path, error) from None


def list_first_operators(path: Path, count: int) -> tuple[str, ...]:
    """Return the operators (`Sub`, `Conv`, ...) of the first `count` nodes of the graph in `path`.

    Raises:
        ModelError: no such file, or not an ONNX file.
    """
    with map_graph_file(path) as data:
        try:
            return tuple(_walk_operators(data, count))
        except (ValueError, IndexError) as error:
            raise _refuse(path, error) from None


@contextmanager
def map_graph_file(path: Path) -> Iterator[mmap.mmap]:
    """Give the bytes of the file at `path`; a ModelError says that it cannot be read."""
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
    for field in walk_graph(data):
        if field.number != _NODE:
            continue
        for part in walk_fields(data, field.start, field.end):
            if part.number == _OP_TYPE:
                yield data[part.start : part.end].decode("utf-8")
        found += 1
        if found == count:
            return


def walk_graph(data: mmap.mmap) -> Iterator[Field]:
    """Yield the fields of the graph: nodes, initialisers, inputs, outputs.

    Raises:
        ValueError: there is no graph, or the file ends before it does.
        IndexError: likewise.
    """
    for field in walk_fields(data, 0, len(data)):
        if field.number == _GRAPH:
            yield from walk_fields(data, field.start, field.end)
            return
    raise ValueError("no graph")


def _read_tensor(data: mmap.mmap, start: int, end: int) -> NDArray[np.float32]:
    shape: list[int] = []
    kind = 0
    raw = b""
    for field in walk_fields(data, start, end):
        if field.number == _DIMS:
            shape += read_numbers(data, field)
        elif field.number == _DATA_TYPE:
            kind = field.value
        elif field.number in (_RAW_DATA, _FLOAT_DATA):
            raw += data[field.start : field.end]
        elif field.number == _LOCATION and field.value:
            raise ValueError("its weights lie in another file")
    if kind not in _KINDS:
        raise ValueError("its last initialiser is not of floats")
    return np.frombuffer(raw, _KINDS[kind]).reshape(shape).astype(np.float32)
