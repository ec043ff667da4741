"""The faces that people enrolled: the consent gate (gate.py), and how it changes.

Every change is in the audit log. What takes a right away (revoking, denying) never waits for the
log; what gives one does.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.errors import ConsentError, RefusedError
from livefuse.safety.actor import get_actor
from livefuse.safety.consent import Terms, parse_consent
from livefuse.safety.embeddings import write_looks
from livefuse.safety.gate import FaceGate
from livefuse.safety.picture import read_picture
from livefuse.safety.records import (
    AVATAR_PREFIX,
    ID_PREFIX,
    FaceRecord,
    check_name,
    describe_record,
    extend_history,
    is_same_name,
    refuse_another,
    tell_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.safety.consent import Consent
    from livefuse.safety.deny_shelf import DeniedFace

    Check = Callable[[NDArray[np.uint8]], None]
    Looks = NDArray[np.float32]

MAX_FACES: Final = 1000
_DAY_S: Final = 86_400


class FaceStore(FaceGate):
    """Enrolled faces, and their changes. Methods may be called from any thread and process."""

    def enroll(
        self,
        picture: bytes,
        consent: str,
        *,
        check: Check,
        name: str = "",
        terms: Terms = Terms(),  # noqa: B008 - immutable
    ) -> FaceRecord:
        """Keep a picture's file with its consent.

        The same picture again renews the consent of the same person; what was agreed before stays
        in the record's history.

        `check` raises when the picture (RGB uint8) does not hold exactly one face.

        Raises:
            ConsentError: the consent lacks something or is over.
            RefusedError: the picture cannot be used or shows a denied face, the name is taken, a
                public figure's or without a network that would know the face again.
            AuditError: it cannot be logged, so it is not done.
            ConfigError: the folder cannot be written.
        """
        agreed = parse_consent(consent, self._clock.epoch_s(), terms)
        name = check_name(name) if name.strip() else ""
        self.refusals.check_text(agreed.who, "the consent")
        self.refusals.check_text(name, "the name")
        rgb = read_picture(picture)
        check(rgb)
        looks = self._embedder.look(rgb) if self._embedder is not None else None
        keeps = not (terms.forget_picture or self._config.forget_picture)
        if not keeps and looks is None:
            raise RefusedError(
                "without its picture nothing would be kept of the face",
                hint="enroll it with its picture",
            )
        digest = hashlib.sha256(picture).hexdigest()
        with self._shelf.lock():
            record = self._create_record(agreed, name, digest, has_picture=keeps)
            self.check_denied(record, looks)
            if self.audit is not None:
                self.audit.append("face.enrolled", who=get_actor(), facts=describe_record(record))
            self._write(record, picture, looks)
        self.forget_expired()
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
            is_new = not record.revoked
            if is_new:
                now = tell_time(self._clock.epoch_s())
                record = msgspec.structs.replace(record, revoked=now)
                self._shelf.write_record(record)
            self._shelf.delete_parts(face_id)
        if is_new and self.audit is not None:
            self.audit.owe("face.revoked", who=get_actor(), facts=describe_record(record))
        return record

    def remove(self, name_or_id: str) -> str:
        """Forget a face wholly; return its id.

        Raises:
            ConsentError: nobody of that name is enrolled.
            AuditError: it cannot be logged: the record would be gone without a trace.
            ConfigError: its files cannot be removed.
        """
        face_id = self._resolve_person(name_or_id)
        with self._shelf.lock():
            if self.audit is not None:
                self.audit.append("face.removed", who=get_actor(), facts={"face": face_id})
            self._shelf.remove(face_id)
        return face_id

    def forget_expired(self) -> tuple[str, ...]:
        """Delete what is kept of faces whose consent ended safety.keep_expired_days ago.

        Their records stay as evidence, as after revoking. Return the ids of those forgotten now.

        Raises:
            ConfigError: something cannot be deleted.
        """
        before_s = self._clock.epoch_s() - self._config.keep_expired_days * _DAY_S
        forgotten = []
        for old in self._shelf.list_records():
            if not self._is_forgettable(old, before_s):
                continue
            with self._shelf.lock():
                record = self._shelf.read_record(old.face_id)  # it may have been renewed meanwhile
                if not self._is_forgettable(record, before_s):
                    continue
                self._shelf.delete_parts(record.face_id)
            forgotten.append(record.face_id)
            if self.audit is not None:
                self.audit.owe("face.forgotten", who=get_actor(), facts=describe_record(record))
        return tuple(forgotten)

    def deny(self, picture: bytes, name: str, *, check: Check) -> DeniedFace:
        """Refuse the one face of a picture's file from now on, in this and every other process.

        Raises:
            RefusedError: the picture or the name cannot be used.
            ModelError, ConfigError: there is no network, or the folder cannot be written.
        """
        denied = self.denied.add(picture, name, check, get_actor())
        if self.audit is not None:
            facts = {
                "denied": denied.denied_id,
                "name": denied.name,
                "picture_sha256": denied.picture_sha256,
            }
            self.audit.owe("face.denied", who=get_actor(), facts=facts)
        return denied

    def undeny(self, name_or_id: str) -> str:
        """Let a denied face go; return its id.

        Raises:
            RefusedError: there is none of that name.
            AuditError: it cannot be logged.
            ConfigError: its files cannot be deleted.
        """
        denied_id = self.denied.shelf.find(name_or_id)
        if self.audit is not None:
            self.audit.append("face.allowed", who=get_actor(), facts={"denied": denied_id})
        return self.denied.remove(denied_id)

    def rotate_keys(self) -> tuple[str, int]:
        """Add a key and seal with it all that is kept; return its id and how many files changed.

        Raises:
            TokenError: there are too many keys in use.
            ConsentError: something kept does not open.
            ConfigError: the folder cannot be written.
        """
        with self._shelf.lock():
            key_id = self.keys.rotate()
            changed = self._reseal()
        if self.audit is not None:  # whose head is sealed with the new key from now on
            self.audit.owe("seal.rotated", facts={"key": key_id})
        return key_id, changed

    def retire_key(self, key_id: str) -> None:
        """Destroy a key, once nothing that is kept needs it.

        Raises:
            TokenError: there is no such key, or it is the one that seals.
            ConsentError: something kept does not open.
            ConfigError: the folder cannot be written.
            AuditError: it cannot be logged.
        """
        with self._shelf.lock():
            self._reseal()
            if self.audit is not None:
                self.audit.append("seal.retired", facts={"key": key_id})
            self.keys.retire(key_id)

    def _reseal(self) -> int:
        changed = self._shelf.reseal()
        if self.denied.sign() is None:
            return changed
        with self.denied.shelf.lock():
            return changed + self.denied.shelf.reseal()

    def _resolve_person(self, name_or_id: str) -> str:
        face_id = self.resolve(name_or_id)
        if face_id.startswith(AVATAR_PREFIX):
            raise ConsentError("a drawn face needs no consent", hint="run  livefuse faces list")
        return face_id

    def _create_record(
        self, agreed: Consent, name: str, digest: str, *, has_picture: bool
    ) -> FaceRecord:
        """Return the record of a picture that is enrolled now, or again; it fits beside others."""
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
            has_picture=has_picture,
        )
        self._check_room(record)
        return record

    def _write(self, record: FaceRecord, picture: bytes, looks: Looks | None) -> None:
        # The record comes last: before it nothing is enrolled, and an older one opens nothing.
        self._shelf.delete_parts(record.face_id)
        if record.has_picture:
            self._shelf.write_part(record, "picture", picture)
        if looks is not None and self._embedder is not None:
            write_looks(self._shelf, record, self._embedder.model, looks)
        self._shelf.write_record(record)

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

    def _is_forgettable(self, record: FaceRecord, before_s: float) -> bool:
        is_over = not record.revoked and record.consent.until_epoch_s < before_s
        return is_over and (
            self._shelf.has_part(record, "picture") or self._shelf.has_part(record, "embedding")
        )
