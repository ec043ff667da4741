"""The record of an enrolled face: who it is, what was agreed, and the proof that it was."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from livefuse.errors import ConsentError, RefusedError
from livefuse.safety.consent import Consent

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.safety.audit_records import Fact

RecordState = Literal["valid", "expired", "revoked"]
RECORD_FILE: Final = "record.json"
ID_PREFIX: Final = "face_"
AVATAR_PREFIX: Final = "avatar:"
"""Drawn faces: nobody's, so nobody has to agree."""

RECORD_VERSION: Final = 2
"""1 had no jobs, evidence or `enrolled_by` in the consent, and always a picture."""

_ID: Final = re.compile(r"face_[0-9a-f]{12}")
_MAX_HISTORY: Final = 32
_NAME: Final = re.compile(r"[^,:/\\\s][^,:/\\]{0,62}[^,:/\\\s]|[^,:/\\\s]")


class FaceRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An enrolled face. Times are ISO 8601 in UTC; `revoked` is empty while it is not.

    `picture_sha256` is of the file that was enrolled, `consent_sha256` of the consent: this is the
    evidence that tells which consent a swap was made under. The picture is sealed with both bound
    in, so that a record that somebody rewrites opens no picture. `history` are the consents before
    this one: hash, who, and when it ended. `has_picture`: the picture is kept, not only what
    recognises the face.
    """

    face_id: str
    name: str = ""
    consent: Consent
    created: str
    picture_sha256: str
    consent_sha256: str
    revoked: str = ""
    history: tuple[str, ...] = ()
    has_picture: bool = True
    version: int = RECORD_VERSION

    @property
    def person(self) -> str:
        """What the gallery calls this person: the name, else the id."""
        return self.name or self.face_id

    def get_state(self, now_epoch_s: float) -> RecordState:
        """Say whether the consent holds."""
        if self.revoked:
            return "revoked"
        return "valid" if now_epoch_s <= self.consent.until_epoch_s else "expired"


def refuse_another(earlier: FaceRecord | None, who: str, now_epoch_s: float) -> None:
    """Refuse to put one person's consent in place of another's that still holds.

    Raises:
        RefusedError: the picture is enrolled as somebody else's.
    """
    if earlier is None or earlier.get_state(now_epoch_s) != "valid" or earlier.consent.who == who:
        return
    raise RefusedError(
        f"this picture is enrolled already as {earlier.person}, of {earlier.consent.who}",
        hint=f"if that was wrong, run  livefuse faces remove {earlier.person}  first",
    )


def extend_history(earlier: FaceRecord | None) -> tuple[str, ...]:
    """Return the history of the record that takes the place of `earlier`."""
    if earlier is None:
        return ()
    end = f"revoked {earlier.revoked}" if earlier.revoked else f"until {earlier.consent.until}"
    entry = f"{earlier.consent_sha256} {earlier.consent.who} {end}"
    return (*earlier.history, entry)[-_MAX_HISTORY:]


def describe_record(record: FaceRecord) -> dict[str, Fact]:
    """Return what the audit log says of a face: who agreed to what, and hashes that prove it."""
    consent, evidence = record.consent, record.consent.evidence
    facts: dict[str, Fact] = {
        "face": record.face_id,
        "name": record.name,
        "consent_by": consent.who,
        "purpose": consent.scope,
        "until": consent.until,
        "jobs": list(consent.jobs),
        "consent_sha256": record.consent_sha256,
        "picture_sha256": record.picture_sha256,
    }
    if evidence is not None:
        facts |= {"evidence": evidence.kind, "evidence_sha256": evidence.sha256}
    return facts


def is_face_id(text: str) -> bool:
    """Say whether `text` looks like the id of an enrolled face."""
    return _ID.fullmatch(text) is not None


def check_name(name: str) -> str:
    """Return `name` in its normal form (NFC).

    Raises:
        RefusedError: it cannot be told from an id, a list of names or a path.
    """
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    is_taken = name.startswith((ID_PREFIX, AVATAR_PREFIX))
    if is_taken or not name.isprintable() or not _NAME.fullmatch(name):
        raise RefusedError(
            "a name is 1 to 64 characters without , : and slashes, and not the like of an id",
            hint="write --name Anna",
        )
    return name


def is_same_name(one: str, other: str) -> bool:
    """Compare names as people do."""
    forms = [unicodedata.normalize("NFC", name).casefold() for name in (one, other)]
    return forms[0] == forms[1]


def read_record(path: Path) -> FaceRecord:
    """Return the record in the file `path`.

    Raises:
        ConsentError: it is not there, damaged, newer than this livefuse, or does not say what was
            agreed.
    """
    face_id = path.parent.name
    hint = f"run  livefuse faces remove {face_id}  and enroll it again"
    try:
        record = _decode(path.read_bytes(), face_id)
        _ = record.consent.until_epoch_s
    except OSError:
        raise ConsentError(
            f"no face {face_id!r} is enrolled", hint="run  livefuse faces enroll"
        ) from None
    except (ValueError, msgspec.MsgspecError):
        raise ConsentError(f"the record of {face_id} is damaged", hint=hint) from None
    if record.face_id != face_id or record.consent.digest != record.consent_sha256:
        raise ConsentError(f"the record of {face_id} was altered", hint=hint)
    return record


def _decode(data: bytes, face_id: str) -> FaceRecord:
    """Return the record in `data`; of an older version as if it had been written today."""
    version = msgspec.json.decode(data, type=_Versioned).version
    if version > RECORD_VERSION:
        raise ConsentError(
            f"the record of {face_id} was written by a newer livefuse",
            hint="use that one, or enroll the picture again in another safety.folder",
        )
    record = msgspec.json.decode(data, type=FaceRecord)
    return msgspec.structs.replace(record, version=RECORD_VERSION)


class _Versioned(msgspec.Struct):
    version: int = 1


def tell_time(epoch_s: float) -> str:
    """Return a time as records tell it."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat("T", "seconds")
