"""The faces that people enrolled, and whether they may be shown: the consent gate.

    <safety folder>/keys.json              the keys (keys.py)
    <safety folder>/faces/ID/record.json   who, what for, until when, and the hashes (records.py)
                             picture       the picture's file, sealed (seal.py)
                             embedding     what the network made of it, sealed
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import shutil
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from livefuse.errors import ConfigError, ConsentError, LivefuseError, RefusedError, TokenError
from livefuse.face import KnownFace, SourceFace
from livefuse.safety.consent import parse_consent
from livefuse.safety.folder import (
    find_safety_folder,
    lock_folder,
    make_private_folder,
    sign_file,
    write_private,
)
from livefuse.safety.keys import KeyRing
from livefuse.safety.picture import read_picture
from livefuse.safety.records import (
    AVATAR_PREFIX,
    ID_PREFIX,
    RECORD_FILE,
    FaceRecord,
    check_name,
    is_face_id,
    is_same_name,
    read_record,
    tell_time,
)
from livefuse.safety.seal import get_key_id, open_bytes, seal_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from livefuse.clock import Clock
    from livefuse.config import SafetyConfig

MAX_FACES: Final = 1000
_PICTURE: Final = "picture"
_EMBEDDING: Final = "embedding"
_LIST_HINT: Final = "run  livefuse faces list"


@dataclass(slots=True, frozen=True)
class Embedder:
    """Turns a picture into the embedding of the one face in it.

    `embed` takes RGB uint8 (height, width, 3) and returns L2-normalised float32 (d,), or raises
    LivefuseError. `model` names the network: embeddings of different ones cannot be compared.
    """

    model: str
    embed: Callable[[NDArray[np.uint8]], NDArray[np.float32]]


class _Embedding(msgspec.Struct, frozen=True):
    model: str
    vector: bytes


class FaceStore:
    """Enrolled faces. Methods may be called from any thread, and by several processes.

    A face whose consent does not hold is never given out. All but `is_allowed` read files.
    """

    def __init__(
        self, config: SafetyConfig, clock: Clock, *, embedder: Embedder | None = None
    ) -> None:
        """Take the folder; nothing is read or made yet."""
        self.folder = find_safety_folder(config)
        self.keys = KeyRing(self.folder, clock)
        self._faces = self.folder / "faces"
        self._clock = clock
        self._embedder = embedder
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[tuple[int, int, int], FaceRecord | None]] = {}

    # Who is there.

    def list_records(self) -> tuple[FaceRecord, ...]:
        """Return the records that can be read, the oldest first."""
        found = []
        for face_id in self._list_ids():
            with contextlib.suppress(ConsentError):
                found.append(read_record(self._faces / face_id / RECORD_FILE))
        return tuple(sorted(found, key=lambda record: (record.created, record.face_id)))

    def list_damaged(self) -> tuple[str, ...]:
        """Return the ids whose records cannot be read."""
        good = {record.face_id for record in self.list_records()}
        return tuple(face_id for face_id in self._list_ids() if face_id not in good)

    def resolve(self, name_or_id: str) -> str:
        """Return the face id that a person wrote as an id or a name; `avatar:NAME` is itself.

        Raises:
            ConsentError: nobody of that name is enrolled.
        """
        wanted = name_or_id.strip()
        if wanted.startswith(AVATAR_PREFIX):
            return wanted
        if is_face_id(wanted) and (self._faces / wanted).is_dir():
            return wanted
        for record in self.list_records():
            if record.name and is_same_name(record.name, wanted):
                return record.face_id
        looks_like_file = "/" in wanted or "." in wanted
        raise ConsentError(
            f"no face {wanted[:64]!r} is enrolled",
            hint="a picture is enrolled first:  livefuse faces enroll PICTURE --consent ..."
            if looks_like_file
            else f"{_LIST_HINT}  or  livefuse faces enroll",
        )

    # The gate.

    def check_consent(self, face_id: str) -> FaceRecord:
        """Return the record of a face that may be shown now.

        Raises:
            ConsentError: it is not enrolled, its consent has expired or was revoked.
        """
        if not is_face_id(face_id):
            raise ConsentError(f"no face {face_id[:64]!r} is enrolled", hint=_LIST_HINT)
        record = read_record(self._faces / face_id / RECORD_FILE)
        state = record.get_state(self._clock.epoch_s())
        if state != "valid":
            when = record.revoked or record.consent.until
            raise ConsentError(
                f"the consent for {record.person} {'was revoked' if record.revoked else 'ended'} "
                f"on {when[:10]}",
                hint="ask for a new one and enroll the picture again",
            )
        return record

    def is_allowed(self, face_id: str) -> bool:
        """Say whether the face may be shown now; cheap enough to be asked every second.

        The record is read anew only when its file changed. When in doubt: no.
        """
        if face_id.startswith(AVATAR_PREFIX):
            return True
        if not is_face_id(face_id):
            return False
        path = self._faces / face_id / RECORD_FILE
        signature = sign_file(path)
        with self._lock:
            if signature is None:
                self._seen.pop(face_id, None)
                return False
            seen = self._seen.get(face_id)
            if seen is None or seen[0] != signature:
                seen = signature, _read_or_none(path)
                self._seen[face_id] = seen
            record = seen[1]
        return record is not None and record.get_state(self._clock.epoch_s()) == "valid"

    def load_source(self, face_id: str) -> SourceFace:
        """Return the enrolled face `face_id`, its long side at most 2048 px.

        Raises:
            ConsentError: it is not enrolled, its consent does not hold, or its picture does not
                open.
            ConfigError: the keys cannot be read.
        """
        record = self.check_consent(face_id)
        data = self._open(record, _PICTURE)
        if hashlib.sha256(data).hexdigest() != record.picture_sha256:
            raise _explain_picture(record, "it is another one")
        return SourceFace(face_id, read_picture(data), record.picture_sha256, "photo")

    def list_gallery(self) -> tuple[KnownFace, ...]:
        """Return the people whose consent holds and whose embedding the present network made.

        Where another network made it, it is made again from the picture: call this in `prepare`.
        """
        known = []
        for record in self.list_records():
            if record.get_state(self._clock.epoch_s()) == "valid":
                embedding = self._get_embedding(record)
                if embedding is not None:
                    known.append(KnownFace(record.person, embedding))
        return tuple(known)

    # Changes.

    def enroll(
        self,
        picture: bytes,
        consent: str,
        *,
        check: Callable[[NDArray[np.uint8]], None],
        name: str = "",
    ) -> FaceRecord:
        """Keep a picture's file with its consent. The same picture again gets the new consent.

        `check` raises when the picture (RGB uint8) does not hold exactly one face.

        Raises:
            ConsentError: the consent lacks something or is over.
            RefusedError: the picture cannot be used, or the name is taken.
            ConfigError: the folder cannot be written.
        """
        agreed = parse_consent(consent, self._clock.epoch_s())
        name = check_name(name) if name.strip() else ""
        rgb = read_picture(picture)
        check(rgb)
        vector = self._embedder.embed(rgb) if self._embedder is not None else None
        digest = hashlib.sha256(picture).hexdigest()
        make_private_folder(self.folder)
        with lock_folder(self._faces):
            earlier = self.find_by_digest(digest)
            record = FaceRecord(
                face_id=earlier.face_id if earlier is not None else self._create_id(),
                name=name or (earlier.name if earlier is not None else ""),
                consent=agreed,
                created=tell_time(self._clock.epoch_s()),
                picture_sha256=digest,
                consent_sha256=agreed.digest,
            )
            self._check_room(record, is_new=earlier is None)
            folder = self._faces / record.face_id
            make_private_folder(folder)
            # The record last: without it nothing is enrolled. Until then the old one opens nothing.
            self._write(record, _PICTURE, picture)
            (folder / _EMBEDDING).unlink(missing_ok=True)
            if vector is not None:
                self._write_embedding(record, vector)
            self._write_record(record)
        return record

    def revoke(self, name_or_id: str) -> FaceRecord:
        """Take a consent back: picture and embedding are deleted, the record stays as evidence.

        Raises:
            ConsentError: nobody of that name is enrolled.
            ConfigError: the folder cannot be written.
        """
        face_id = self.resolve(name_or_id)
        self._refuse_avatar(face_id)
        with lock_folder(self._faces):
            record = read_record(self._faces / face_id / RECORD_FILE)
            if not record.revoked:
                now = tell_time(self._clock.epoch_s())
                record = msgspec.structs.replace(record, revoked=now)
                self._write_record(record)
            for part in (_PICTURE, _EMBEDDING):
                (self._faces / face_id / part).unlink(missing_ok=True)
        return record

    def remove(self, name_or_id: str) -> str:
        """Forget a face wholly; return its id.

        Raises:
            ConsentError: nobody of that name is enrolled.
            ConfigError: its files cannot be removed.
        """
        face_id = self.resolve(name_or_id)
        self._refuse_avatar(face_id)
        with lock_folder(self._faces):
            folder = self._faces / face_id
            try:
                (folder / RECORD_FILE).unlink(missing_ok=True)  # first: now nothing is enrolled
                shutil.rmtree(folder)
            except OSError as error:
                raise ConfigError(
                    f"cannot remove {folder} ({error.strerror or 'busy'})",
                    hint="check who may write there",
                ) from None
        return face_id

    def reseal(self) -> int:
        """Seal all that is kept with the newest key; return how many files had an older one.

        Raises:
            ConsentError: a picture does not open.
            ConfigError: the folder cannot be written.
        """
        if not self._faces.is_dir():
            return 0
        current, _ = self.keys.get_current()
        changed = 0
        with lock_folder(self._faces):
            for record in self.list_records():
                for part in (_PICTURE, _EMBEDDING):
                    path = self._faces / record.face_id / part
                    if path.is_file() and get_key_id(path.read_bytes()) != current:
                        self._write(record, part, self._open(record, part))
                        changed += 1
        return changed

    def find_by_digest(self, picture_sha256: str) -> FaceRecord | None:
        """Return the record of the picture with this SHA-256, whatever its state."""
        records = self.list_records()
        return next((r for r in records if r.picture_sha256 == picture_sha256), None)
