"""One record of the audit log: its fields, its canonical bytes, its place in the chain. Pure.

A line is the record's canonical JSON. `hash` is the SHA-256 of that JSON with `hash` empty, and
`previous` the hash of the line before: whoever changes a line has to change all that follow. `seal`
is a MAC by the store's key over the JSON with both empty, so that a line that the head
(audit_head.py) does not know yet is known to be ours.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping

Fact = str | bool | int | float | list[str]
NO_HASH: Final = "0" * 64
MAX_LINE_BYTES: Final = 16_384
BROKEN: Final = "audit.broken"
MENDED: Final = "audit.mended"
RESUMED: Final = "audit.resumed"

_MAX_FACTS, _MAX_NAME, _MAX_WHO, _MAX_JOB = 24, 40, 100, 64
# Longest text and list of facts: what does not fit into a line is cut further.
_CUTS: Final = ((500, 32), (120, 8), (40, 2))
_MAX_INTEGER: Final = 2**63
_MAC_CHARACTERS: Final = 32


class AuditKey(NamedTuple):
    """A key of the store's ring, as the audit uses it. `secret` is derived: it opens nothing."""

    key_id: str
    secret: bytes

    @classmethod
    def derive(cls, key_id: str, secret: bytes) -> AuditKey:
        """Return the audit's own key of one of the ring's (HMAC as a key derivation function)."""
        return cls(key_id, hmac.digest(secret, b"livefuse/1/audit", "sha256"))

    def seal(self, kind: str, text: str) -> str:
        """Return the MAC of a thing of `kind`, with the key's id before it."""
        mac = hmac.new(self.secret, f"{kind}/{text}".encode(), "sha256").hexdigest()
        return f"{self.key_id}:{mac[:_MAC_CHARACTERS]}"

    def is_sealed(self, kind: str, text: str, seal: str) -> bool:
        """Say whether `seal` is this key's of that thing."""
        return hmac.compare_digest(self.seal(kind, text).encode(), seal.encode())


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the log. `time` is UTC, ISO 8601 with milliseconds: the wall clock's, as it was.

    `who` is the name of the key that asked, `cli` for the command line, `python` for a program,
    `livefuse` for what happened by itself.
    """

    sequence: int
    time: str
    event: str
    who: str = ""
    job: str = ""
    facts: dict[str, Fact] = msgspec.field(default_factory=dict)
    previous: str = NO_HASH
    hash: str = ""
    seal: str = ""

    def encode(self) -> bytes:
        """Return the canonical bytes: JSON, fields in their order, names of facts sorted."""
        return msgspec.json.encode(self, order="deterministic")

    def digest(self) -> str:
        """Return what `hash` has to be."""
        return _hash(msgspec.structs.replace(self, hash=""))

    def is_sealed(self, key: AuditKey) -> bool:
        """Say whether the seal is that key's."""
        bare = msgspec.structs.replace(self, hash="", seal="")
        return key.is_sealed("line", _hash(bare), self.seal)

    def close(self, sequence: int, previous: str, key: AuditKey) -> AuditRecord:
        """Return the record at its place in the chain, sealed and hashed."""
        placed = msgspec.structs.replace(self, sequence=sequence, previous=previous)
        sealed = msgspec.structs.replace(placed, seal=key.seal("line", _hash(placed)))
        return msgspec.structs.replace(sealed, hash=sealed.digest())


def _hash(record: AuditRecord) -> str:
    return hashlib.sha256(record.encode()).hexdigest()


class _Claim(msgspec.Struct, frozen=True):
    sequence: int
    hash: str


def parse_line(line: bytes) -> AuditRecord | None:
    """Return the record in a line without its end, None when it was altered in any way."""
    try:
        record = msgspec.json.decode(line, type=AuditRecord)
    except (msgspec.MsgspecError, ValueError):
        return None
    return record if record.encode() == line and record.digest() == record.hash else None


def read_loosely(line: bytes) -> tuple[int, str] | None:
    """Return number and hash that an altered line still claims, None when it claims none."""
    try:
        fields = msgspec.json.decode(line, type=_Claim)
    except (msgspec.MsgspecError, ValueError):
        return None
    is_likely = 0 < fields.sequence < _MAX_INTEGER and len(fields.hash) == len(NO_HASH)
    return (fields.sequence, fields.hash) if is_likely else None


def draft_record(
    epoch_s: float, event: str, who: str, job: str, facts: Mapping[str, Fact]
) -> AuditRecord:
    """Return a record that has no place in the chain yet: bounded, and without secrets."""
    record = AuditRecord(sequence=0, time="", event="")
    for text_length, list_length in _CUTS:
        items = list(facts.items())[:_MAX_FACTS]
        record = AuditRecord(
            sequence=0,
            time=tell_instant(epoch_s),
            event=_clean(event, _MAX_JOB),
            who=_clean(who, _MAX_WHO),
            job=_clean(job, _MAX_JOB),
            facts={_clean(k, _MAX_NAME): _bound(v, text_length, list_length) for k, v in items},
        )
        if len(record.encode()) < MAX_LINE_BYTES - 512:  # the hashes come on top
            break
    return record


def tell_instant(epoch_s: float) -> str:
    """Return a time as the log tells it: UTC, to the millisecond."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat("T", "milliseconds")


def _bound(value: Fact, text_length: int, list_length: int) -> Fact:
    if isinstance(value, list | tuple):
        kept = [_clean(str(item), text_length) for item in value[:list_length]]
        more = len(value) - list_length
        return [*kept, f"and {more} more"] if more > 0 else kept
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        fits = math.isfinite(value) and abs(value) < _MAX_INTEGER
        return value if fits else _clean(str(value), text_length)
    return _clean(str(value), text_length)


def _clean(text: str, length: int) -> str:
    """Return `text` without secrets and within bounds; bytes that are no text become `?`."""
    text = redact_text(text.encode("utf-8", "replace").decode("utf-8"))
    return text if len(text) <= length else text[: length - 1] + "…"
