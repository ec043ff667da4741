"""The head of the audit log: how far it goes, sealed with the store's key.

The chain alone cannot tell that its end was cut off, or that all of it was written anew; the head
can. It is written whole, after the line that it tells of; a line that is ahead of it (a process was
killed in between) carries a seal of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import msgspec

from livefuse.errors import TokenError
from livefuse.safety.audit_records import AuditKey
from livefuse.safety.folder import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.safety.keys import KeyRing

HEAD_FILE: Final = "head.json"

SealState = Literal["good", "missing", "damaged", "foreign", "retired", "unchecked"]


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`first` is the oldest record that is kept, `sequence` and `hash` are the newest one's.

    `anchored`: there was an anchor (audit_anchor.py) when it was written; left out where there was
    none, so that heads of before there were anchors keep their seals.
    """

    first: int
    sequence: int
    hash: str
    seal: str = ""
    anchored: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def has_anchor(self) -> bool:
        """Whether there has to be an anchor."""
        return self.anchored is True

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        return msgspec.json.encode(self)

    def close(self, key: AuditKey) -> Head:
        """Return it sealed."""
        return msgspec.structs.replace(self, seal=key.seal("head", self._bare()))

    def is_sealed(self, key: AuditKey) -> bool:
        """Say whether its seal is that key's."""
        return key.is_sealed("head", self._bare(), self.seal)

    def _bare(self) -> str:
        return msgspec.structs.replace(self, seal="").encode().decode()


class HeadFound(NamedTuple):
    """The head that lies in a folder, and what is to be thought of it.

    foreign: its seal is not ours; retired: it was sealed with a key that is no more;
    unchecked: there is no key at hand to check it with.
    """

    head: Head | None
    state: SealState


class Sealed(Protocol):
    """What a key of the audit has sealed."""

    @property
    def seal(self) -> str:
        """The MAC, the key's id before it."""
        ...

    def is_sealed(self, key: AuditKey) -> bool:
        """Say whether the seal is that key's."""
        ...


def read_head(folder: Path, ring: KeyRing | None) -> HeadFound:
    """Return the head of the log in `folder`; without `ring` its seal is not checked.

    Raises:
        ConfigError: the keys cannot be read.
    """
    try:
        head = msgspec.json.decode((folder / HEAD_FILE).read_bytes(), type=Head)
    except FileNotFoundError:
        return HeadFound(None, "missing")
    except (OSError, ValueError, msgspec.MsgspecError):
        return HeadFound(None, "damaged")
    return HeadFound(head, judge_seal(head, ring))


def judge_seal(thing: Sealed, ring: KeyRing | None) -> SealState:
    """Return what the seal of `thing` is worth; without `ring` it is not checked.

    Raises:
        ConfigError: the keys cannot be read.
    """
    if ring is None:
        return "unchecked"
    key_id = thing.seal.partition(":")[0]
    key = find_key(ring, key_id)
    if key is not None:
        return "good" if thing.is_sealed(key) else "foreign"
    is_known = any(known.key_id == key_id for known in ring.list_keys())
    return "retired" if is_known else "foreign"


def knows_head(folder: Path, ring: KeyRing) -> bool:
    """Say whether the head of the log in `folder` names a key of `ring`.

    Raises:
        ConfigError: the keys cannot be read.
    """
    head = read_head(folder, None).head
    key_id = head.seal.partition(":")[0] if head is not None else ""
    return any(key.key_id == key_id for key in ring.list_keys())


def find_key(ring: KeyRing, key_id: str) -> AuditKey | None:
    """Return the audit's key of that id, None when it is not in the ring or retired.

    Raises:
        ConfigError: the keys cannot be read.
    """
    try:
        return AuditKey.derive(key_id, ring.get(key_id))
    except TokenError:
        return None


def write_head(folder: Path, head: Head) -> None:
    """Write the head whole or not at all. The caller holds the folder's lock.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(folder / HEAD_FILE, head.encode())
