"""The embeddings of enrolled faces: kept sealed, made again when another network is in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from livefuse.errors import LivefuseError
from livefuse.safety.picture import read_picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from livefuse.safety.records import FaceRecord
    from livefuse.safety.shelf import Shelf


@dataclass(slots=True, frozen=True)
class FaceEmbedder:
    """Turns a picture into the embedding of the one face in it.

    `embed` takes RGB uint8 (height, width, 3) and returns L2-normalised float32 (d,), or raises
    LivefuseError. `model` names the network: embeddings of different ones cannot be compared.
    """

    model: str
    embed: Callable[[NDArray[np.uint8]], NDArray[np.float32]]


class _Kept(msgspec.Struct, frozen=True):
    model: str
    vector: bytes  # float32, little endian


def write_embedding(
    shelf: Shelf, record: FaceRecord, model: str, vector: NDArray[np.float32]
) -> None:
    """Keep what `model` made of a face.

    Raises:
        ConfigError: it cannot be written.
    """
    kept = _Kept(model, vector.astype("<f4").tobytes())
    shelf.write_part(record, "embedding", msgspec.msgpack.encode(kept))


def get_embedding(
    shelf: Shelf, record: FaceRecord, embedder: FaceEmbedder
) -> NDArray[np.float32] | None:
    """Return the face's embedding (d,) by this embedder's network, made now if need be.

    None: the picture cannot be opened or is gone by then, or the network makes nothing of it.
    """
    try:
        if shelf.has_part(record, "embedding"):
            data = shelf.open_part(record, "embedding")
            kept = msgspec.msgpack.decode(data, type=_Kept)
            if kept.model == embedder.model:
                return np.frombuffer(kept.vector, "<f4").astype(np.float32)
        vector = embedder.embed(read_picture(shelf.open_part(record, "picture")))
        with shelf.lock():
            # It may have been revoked, or removed, while the network looked at it.
            if not shelf.has_part(record, "picture"):
                return None
            write_embedding(shelf, record, embedder.model, vector)
    except (LivefuseError, msgspec.MsgspecError, ValueError):
        return None
    return vector
