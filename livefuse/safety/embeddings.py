"""The embeddings of enrolled faces: kept sealed, made again when another network is in use.

A picture is looked at more than once (as it is, closer, wider, mirrored): each look is a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from livefuse.errors import LivefuseError
from livefuse.safety.picture import read_picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.safety.records import FaceRecord
    from livefuse.safety.shelf import Shelf

_DLIB_SAME: Final = 0.924  # of the network that comes along


@dataclass(slots=True, frozen=True)
class FaceEmbedder:
    """Turns a picture into the embedding of the one face in it.

    `embed` takes RGB uint8 (height, width, 3) and returns L2-normalised float32 (d,), or raises
    LivefuseError; `embed_looks` returns one row for each look, (n, d), the first as `embed`.
    `model` names the network: embeddings of different ones cannot be compared. `get_same` returns
    the cosine from which two of them are one person's.
    """

    model: str
    embed: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    embed_looks: Callable[[NDArray[np.uint8]], NDArray[np.float32]] | None = None
    get_same: Callable[[], float] = lambda: _DLIB_SAME

    def look(self, rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the looks, (n, d); one where there is no `embed_looks`.

        Raises:
            LivefuseError: the network cannot be had, or finds no single face.
        """
        return self.embed(rgb)[None] if self.embed_looks is None else self.embed_looks(rgb)


class _Kept(msgspec.Struct, frozen=True):
    model: str
    vector: bytes  # float32, little endian
    looks: bytes = b""  # all rows; of before there were several: only the vector


def encode_looks(model: str, looks: NDArray[np.float32]) -> bytes:
    """Return what is kept of the rows that `model` made."""
    rows = looks.astype("<f4")
    return msgspec.msgpack.encode(_Kept(model, rows[0].tobytes(), rows.tobytes()))


def decode_looks(data: bytes, model: str) -> NDArray[np.float32] | None:
    """Return the rows (n, d), or None when another network made them.

    Raises:
        msgspec.MsgspecError, ValueError: it is no such thing.
    """
    kept = msgspec.msgpack.decode(data, type=_Kept)
    if kept.model != model:
        return None
    length = len(kept.vector) // 4
    rows = np.frombuffer(kept.looks or kept.vector, "<f4").reshape(-1, length)
    return rows.astype(np.float32)


def write_looks(shelf: Shelf, record: FaceRecord, model: str, looks: NDArray[np.float32]) -> None:
    """Keep what `model` made of a face.

    Raises:
        ConfigError: it cannot be written.
    """
    shelf.write_part(record, "embedding", encode_looks(model, looks))


def get_looks(
    shelf: Shelf, record: FaceRecord, embedder: FaceEmbedder
) -> NDArray[np.float32] | None:
    """Return the face's looks (n, d) by this embedder's network, made now if need be.

    None: the picture cannot be opened or is gone, or the network makes nothing of it.
    """
    try:
        if shelf.has_part(record, "embedding"):
            looks = decode_looks(shelf.open_part(record, "embedding"), embedder.model)
            if looks is not None:
                return looks
        looks = embedder.look(read_picture(shelf.open_part(record, "picture")))
        with shelf.lock():
            # It may have been revoked, or removed, while the network looked at it.
            if not shelf.has_part(record, "picture"):
                return None
            write_looks(shelf, record, embedder.model, looks)
    except (LivefuseError, msgspec.MsgspecError, ValueError):
        return None
    return looks
