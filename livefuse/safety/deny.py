"""The deny gallery: source pictures of these people are refused, by the likeness of the faces.

A verdict asks several looks at the picture (as it is, closer, wider, and mirrored), each against
the denied face's own looks; it needs 5 of 6, at the likeness at which the identity network takes
two faces for one person. Measured with the network that comes along (dlib_resnet_128, likeness
0.924) on 9 pictures of 8 people and 8 changes of each (JPEG at 30 %, dark, tinted, grey, turned by
12 degrees, mirrored, shrunk, noisy): a single look takes two people for one at up to 0.927; by 5
of 6 none of 622 comparisons of two people is a match, and all 71 of one person are (0.969 at
least). Small figures: look-alikes and a person's pictures years apart were not among them.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from livefuse.errors import ConfigError, ModelError, RefusedError
from livefuse.safety.deny_shelf import DENIED_PREFIX, DeniedFace, DeniedShelf
from livefuse.safety.embeddings import decode_looks, encode_looks
from livefuse.safety.picture import read_picture
from livefuse.safety.records import check_name, tell_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from livefuse.clock import Clock
    from livefuse.safety.embeddings import FaceEmbedder
    from livefuse.safety.keys import KeyRing

    Looks = NDArray[np.float32]
    Signature = tuple[int, int, int]

MAX_DENIED: Final = 1000
_AGREEING: Final = 5 / 6


class Verdict(NamedTuple):
    """Whom a picture's face is most like: a denied one's id, how much, how many looks say so.

    `score` is the median cosine of the looks, `agreeing` of `looks` of them reach `threshold`.
    """

    denied_id: str
    score: float
    agreeing: int
    looks: int
    threshold: float

    @property
    def is_denied(self) -> bool:
        """Whether 5 of 6 looks agree."""
        return self.agreeing >= math.ceil(_AGREEING * self.looks - 1e-9)


def judge_looks(
    looks: Looks, denied: Sequence[tuple[str, Looks]], threshold: float
) -> Verdict | None:
    """Return the verdict on (n, d) against the denied faces' (m, d); None: there are none."""
    best: Verdict | None = None
    for denied_id, theirs in denied:
        cosines = np.median(looks @ theirs.T, axis=1)
        agreeing = int((cosines >= threshold).sum())
        verdict = Verdict(denied_id, float(np.median(cosines)), agreeing, len(looks), threshold)
        if best is None or (verdict.agreeing, verdict.score) > (best.agreeing, best.score):
            best = verdict
    return best


class DenyList:
    """The denied faces, for one network. Safe from any thread; several processes may change it."""

    def __init__(
        self,
        folder: Path,
        keys: KeyRing,
        clock: Clock,
        embedder: FaceEmbedder | None,
        margin: float = 0.0,
    ) -> None:
        """Take the safety folder; nothing is read yet. `margin` is added to the likeness."""
        self.shelf = DeniedShelf(folder, keys)
        self._clock = clock
        self._embedder = embedder
        self._margin = margin
        self._lock = threading.Lock()
        self._read: tuple[Signature | None, tuple[tuple[str, Looks], ...]] = (None, ())

    def list_records(self) -> tuple[DeniedFace, ...]:
        """Return all, the oldest first.

        Raises:
            ConfigError: one cannot be read.
        """
        return self.shelf.list_records()

    def add(
        self,
        picture: bytes,
        name: str,
        check: Callable[[NDArray[np.uint8]], None],
        denied_by: str = "",
    ) -> DeniedFace:
        """Deny the one face of a picture's file; of the same picture again only the name changes.

        Raises:
            RefusedError: the picture cannot be used, or there are too many.
            ModelError, ConfigError: there is no network, or it cannot be written.
        """
        embedder = self._get_embedder()
        name = check_name(name)
        rgb = read_picture(picture)
        check(rgb)
        looks = embedder.look(rgb)
        digest = hashlib.sha256(picture).hexdigest()
        with self.shelf.lock():
            others = self.shelf.list_records()
            same = next((r for r in others if r.picture_sha256 == digest), None)
            if same is None and len(others) >= MAX_DENIED:
                raise RefusedError(f"{MAX_DENIED} faces are denied", hint="remove some first")
            record = DeniedFace(
                denied_id=same.denied_id if same else f"{DENIED_PREFIX}{secrets.token_hex(6)}",
                name=name,
                created=tell_time(self._clock.epoch_s()),
                picture_sha256=digest,
                denied_by=denied_by,
            )
            self.shelf.write(record, picture, encode_looks(embedder.model, looks))
        return record

    def remove(self, name_or_id: str) -> str:
        """Let a face go; return its id.

        Raises:
            RefusedError: there is none of that name.
            ConfigError: its files cannot be deleted.
        """
        denied_id = self.shelf.find(name_or_id)
        with self.shelf.lock():
            self.shelf.remove(denied_id)
        return denied_id

    def sign(self) -> Signature | None:
        """Return what changes with the list; one look at a file. None: nobody is denied."""
        return self.shelf.sign()

    def judge(self, looks: Looks) -> Verdict | None:
        """Return whom the face is most like; None: nobody is denied.

        After a change of the list it is read again, and what another network made of a face is
        made again from its picture: seconds, then.

        Raises:
            ModelError, ConfigError: the list cannot be read by this network: nobody can tell.
        """
        signature = self.sign()
        if signature is None:
            return None
        with self._lock:
            if self._read[0] != signature:
                records = self.shelf.list_records()
                self._read = signature, tuple((r.denied_id, self._look(r)) for r in records)
            denied = self._read[1]
        return judge_looks(looks, denied, self._get_embedder().get_same() + self._margin)

    def _look(self, record: DeniedFace) -> Looks:
        embedder = self._get_embedder()
        try:
            kept = decode_looks(self.shelf.open_part(record, "embedding"), embedder.model)
        except (ConfigError, msgspec.MsgspecError, ValueError):
            kept = None
        if kept is not None:
            return kept
        try:
            looks = embedder.look(read_picture(self.shelf.open_part(record, "picture")))
        except RefusedError as error:
            raise ConfigError(
                f"{embedder.model} sees no single face in the denied picture of {record.name}",
                hint=f"deny another picture, then  livefuse faces deny --remove {record.denied_id}",
            ) from error
        self.shelf.write_part(record, "embedding", encode_looks(embedder.model, looks))
        return looks

    def _get_embedder(self) -> FaceEmbedder:
        if self._embedder is None:
            raise ModelError("no identity network was opened", hint="please report it")
        return self._embedder
