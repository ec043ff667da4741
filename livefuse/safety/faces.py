"""The faces that people enrolled, and whether they may be shown: the consent gate."""

from __future__ import annotations

import hashlib
import secrets
import threading
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.errors import ConsentError, RefusedError
from livefuse.face import KnownFace, SourceFace
from livefuse.safety.consent import parse_consent
from livefuse.safety.embeddings import FaceEmbedder, get_embedding, write_embedding
from livefuse.safety.folder import find_safety_folder
from livefuse.safety.keys import KeyRing
from livefuse.safety.picture import read_picture
from livefuse.safety.records import (
    AVATAR_PREFIX,
    ID_PREFIX,
    FaceRecord,
    check_name,
    extend_history,
    is_same_name,
    refuse_another,
    tell_time,
)
from livefuse.safety.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.clock import Clock
    from livefuse.config import SafetyConfig

    Signature = tuple[int, int, int]

MAX_FACES: Final = 1000
_LIST_HINT: Final = "run  livefuse faces list"


class FaceStore:
    """Enrolled faces. Methods may be called from any thread, and by several processes.

    A face whose consent does not hold is never given out. All but `is_allowed` read files whole.
    """

    def __init__(
        self, config: SafetyConfig, clock: Clock, *, embedder: FaceEmbedder | None = None
    ) -> None:
        """Take the folder; nothing is read or made yet. Without `embedder` there is no gallery."""
        self.folder = find_safety_folder(config)
        self.keys = KeyRing(self.folder, clock)
        self._shelf = Shelf(self.folder, self.keys)
        self._clock = clock
        self._embedder = embedder
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[Signature, FaceRecord | None]] = {}
        self._vectors: dict[str, tuple[Signature, NDArray[np.float32] | None]] = {}

    # Who is there.

    def list_records(self) -> tuple[FaceRecord, ...]:
        """Return the records that can be read, the oldest first."""
        return self._shelf.list_records()

    def list_damaged(self) -> tuple[str, ...]:
        """Return the ids whose records cannot be read."""
        good = {record.face_id for record in self._shelf.list_records()}
        return tuple(face_id for face_id in self._shelf.list_ids() if face_id not in good)

    def find_by_digest(self, picture_sha256: str) -> FaceRecord | None:
        """Return the record of the picture with this SHA-256, whatever its state."""
        records = self._shelf.list_records()
        return next((r for r in records if r.picture_sha256 == picture_sha256), None)

    def resolve(self, name_or_id: str) -> str:
        """Return the id of a face by id, name or picture (`sha256:HEX`); `avatar:NAME` is itself.

        Raises:
            ConsentError: nobody of that name is enrolled.
        """
        wanted = name_or_id.strip()
        if wanted.startswith(AVATAR_PREFIX) or self._shelf.has(wanted):
            return wanted
        for record in self._shelf.list_records():
            is_named = record.name and is_same_name(record.name, wanted)
            if is_named or record.picture_sha256 == wanted.removeprefix("sha256:"):
                return record.face_id
        looks_like_file = "/" in wanted or "." in wanted
        raise ConsentError(
            f"no face {wanted[:64]!r} is enrolled",
            hint='a picture is enrolled first:  livefuse faces enroll PICTURE --consent "..."'
            if looks_like_file
            else f"{_LIST_HINT}  or  livefuse faces enroll",
        )

    # The gate.

    def check_consent(self, face_id: str) -> FaceRecord:
        """Return the record of a face that may be shown now.

        Raises:
            ConsentError: it is not enrolled, its consent has expired or was revoked.
        """
        record = self._shelf.read_record(face_id)
        if record.get_state(self._clock.epoch_s()) != "valid":
            when = f"was revoked on {record.revoked[:10]}"
            if not record.revoked:
                when = f"ended on {record.consent.until[:10]}"
            raise ConsentError(
                f"the consent for {record.person} {when}",
                hint="ask for a new one and enroll the picture again",
            )
        return record

    def is_allowed(self, face_id: str) -> bool:
        """Say whether the face may be shown now; cheap enough to be asked every second.

        The record is read anew only when its file changed. When in doubt: no.
        """
        if face_id.startswith(AVATAR_PREFIX):
            return True
        record = self._see(face_id)[1]
        return record is not None and record.get_state(self._clock.epoch_s()) == "valid"

    def load_source(self, face_id: str) -> SourceFace:
        """Return the enrolled face `face_id`, its long side at most 2048 px.

        Raises:
            ConsentError: it is not enrolled, its consent does not hold, or its picture does not
                open.
            ConfigError: the keys cannot be read.
        """
        record = self.check_consent(face_id)
        data = self._shelf.open_part(record, "picture")
        return SourceFace(face_id, read_picture(data), record.picture_sha256, "photo")

    def list_gallery(self) -> tuple[KnownFace, ...]:
        """Return the people whose consent holds, by name (without one: by id).

        Asked again it is cheap, but for who is new. What another network made of a face is made
        again from its picture: never call this for a frame. A face that cannot be read is left
        out.
        """
        if self._embedder is None:
            return ()
        now_epoch_s = self._clock.epoch_s()
        known, vectors = [], {}
        for face_id in self._shelf.list_ids():
            signature, record = self._see(face_id)
            if signature is None or record is None or record.get_state(now_epoch_s) != "valid":
                continue
            kept = self._vectors.get(face_id)
            if kept is None or kept[0] != signature:
                kept = signature, get_embedding(self._shelf, record, self._embedder)
            vectors[face_id] = kept
            if kept[1] is not None:
                known.append(KnownFace(record.person, kept[1]))
        self._vectors = vectors
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
        """Keep a picture's file with its consent.

        The same picture again renews the consent of the same person; what was agreed before stays
        in the record's history.

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
        with self._shelf.lock():
            earlier = self.find_by_digest(digest)
            refuse_another(earlier, agreed.who, self._clock.epoch_s())
            record = FaceRecord(
                face_id=earlier.face_id if earlier else f"{ID_PREFIX}{secrets.token_hex(6)}",
                name=name or (earlier.name if earlier else ""),
                consent=agreed,
                created=tell_time(self._clock.epoch_s()),
                picture_sha256=digest,
                consent_sha256=agreed.digest,
                history=extend_history(earlier),
            )
            self._check_room(record)
            # The record comes last: before it nothing is enrolled, and an older one opens nothing.
            self._shelf.delete_parts(record.face_id)
            self._shelf.write_part(record, "picture", picture)
            if vector is not None and self._embedder is not None:
                write_embedding(self._shelf, record, self._embedder.model, vector)
            self._shelf.write_record(record)
        return record

    def revoke(self, name_or_id: str) -> FaceRecord:
        """Take a consent back: picture and embedding are deleted, the record stays as evidence.

        Raises:
            ConsentError: nobody of that name is enrolled.
            ConfigError: the folder cannot be written.
        """
        face_id = self._resolve_person(name_or_id)
        with self._shelf.lock():
            record = self._shelf.read_record(face_id)
            if not record.revoked:
                now = tell_time(self._clock.epoch_s())
                record = msgspec.structs.replace(record, revoked=now)
                self._shelf.write_record(record)
            self._shelf.delete_parts(face_id)
        return record

    def remove(self, name_or_id: str) -> str:
        """Forget a face wholly; return its id.

        Raises:
            ConsentError: nobody of that name is enrolled.
            ConfigError: its files cannot be removed.
        """
        face_id = self._resolve_person(name_or_id)
        with self._shelf.lock():
            self._shelf.remove(face_id)
        return face_id

    def rotate_keys(self) -> tuple[str, int]:
        """Add a key and seal with it all that is kept; return its id and how many files changed.

        Raises:
            TokenError: there are too many keys in use.
            ConsentError: something kept does not open.
            ConfigError: the folder cannot be written.
        """
        with self._shelf.lock():
            key_id = self.keys.rotate()
            return key_id, self._shelf.reseal()

    def retire_key(self, key_id: str) -> None:
        """Destroy a key, once nothing that is kept needs it.

        Raises:
            TokenError: there is no such key, or it is the one that seals.
            ConsentError: something kept does not open.
            ConfigError: the folder cannot be written.
        """
        with self._shelf.lock():
            self._shelf.reseal()
            self.keys.retire(key_id)

    def _resolve_person(self, name_or_id: str) -> str:
        face_id = self.resolve(name_or_id)
        if face_id.startswith(AVATAR_PREFIX):
            raise ConsentError("a drawn face needs no consent", hint=_LIST_HINT)
        return face_id

    def _check_room(self, record: FaceRecord) -> None:
        others = [r for r in self._shelf.list_records() if r.face_id != record.face_id]
        if len(others) >= MAX_FACES:
            raise RefusedError(f"{MAX_FACES} faces are enrolled", hint="remove some first")
        for other in others:
            if record.name and other.name and is_same_name(record.name, other.name):
                raise RefusedError(
                    f"the name {record.name} is taken by {other.face_id}",
                    hint="choose another, or remove that face first",
                )

    def _see(self, face_id: str) -> tuple[Signature | None, FaceRecord | None]:
        """Return the record and its file's signature; read anew only when the file changed."""
        signature = self._shelf.sign_record(face_id)
        with self._lock:
            if signature is None:
                self._seen.pop(face_id, None)
                return None, None
            seen = self._seen.get(face_id)
            if seen is None or seen[0] != signature:
                try:
                    seen = signature, self._shelf.read_record(face_id)
                except ConsentError:
                    seen = signature, None
                self._seen[face_id] = seen
            return seen
