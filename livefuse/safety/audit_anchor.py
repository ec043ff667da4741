"""How far the audit log went, kept outside of its folder: the anchor.

    <safety folder>/audit-anchor.json      beside the folder `audit`, sealed with the store's key

The head (audit_head.py) lies beside the lines that it speaks of: who removes the folder, or puts an
older copy in its place, takes the head along. The anchor stays, and tells that a log was there and
how far it went. It is written after the head, so it may be behind for a moment, never ahead.

Its limit: who may write the whole safety folder can remove both, or put both back to one earlier
state. That is found by nobody but who keeps the newest number and hash, which `livefuse audit
verify` shows, on another machine.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.safety.audit_files import AUDIT_FOLDER, sync_folder
from livefuse.safety.audit_head import judge_seal
from livefuse.safety.folder import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.safety.audit_head import Head, SealState
    from livefuse.safety.audit_records import AuditKey
    from livefuse.safety.keys import KeyRing

ANCHOR_FILE: Final = "audit-anchor.json"


class Anchor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number and the hash of the newest record."""

    sequence: int
    hash: str
    seal: str = ""

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        return msgspec.json.encode(self)

    def close(self, key: AuditKey) -> Anchor:
        """Return it sealed."""
        return msgspec.structs.replace(self, seal=key.seal("anchor", self._bare()))

    def is_sealed(self, key: AuditKey) -> bool:
        """Say whether its seal is that key's."""
        return key.is_sealed("anchor", self._bare(), self.seal)

    def _bare(self) -> str:
        return msgspec.structs.replace(self, seal="").encode().decode()


class AnchorFound(NamedTuple):
    """The anchor of a log, and what is to be thought of it: as of the head (`HeadFound`)."""

    anchor: Anchor | None
    state: SealState


def read_anchor(folder: Path, ring: KeyRing | None) -> AnchorFound:
    """Return the anchor of the log in `folder`; without `ring` its seal is not checked.

    A copy of the log under another name has none.

    Raises:
        ConfigError: the keys cannot be read.
    """
    if folder.name != AUDIT_FOLDER:
        return AnchorFound(None, "missing")
    try:
        data = (folder.parent / ANCHOR_FILE).read_bytes()
        anchor = msgspec.json.decode(data, type=Anchor)
    except FileNotFoundError:
        return AnchorFound(None, "missing")
    except (OSError, ValueError, msgspec.MsgspecError):
        return AnchorFound(None, "damaged")
    return AnchorFound(anchor, judge_seal(anchor, ring))


def write_anchor(folder: Path, head: Head, key: AuditKey) -> None:
    """Let the anchor of the log in `folder` say what `head` says. The caller holds the log's lock.

    One that cannot be written stays as it was: it is behind then, and the next record moves it.
    """
    path = folder.parent / ANCHOR_FILE
    is_new = not path.exists()
    with contextlib.suppress(OSError):
        write_whole(path, Anchor(sequence=head.sequence, hash=head.hash).close(key).encode())
        if is_new:
            sync_folder(path.parent)


def compare_end(end: Head, found: AnchorFound) -> str:
    """Return what is wrong with a log that ends at `end`, in a few words; empty: nothing.

    `end` has the number and hash of the newest line, or what its head says of a lost one.
    """
    anchor, state = found
    if anchor is None or state == "foreign":
        # Logs of before there were anchors have none, and their heads do not speak of one.
        return f"the anchor is {state}" if state != "missing" or end.has_anchor else ""
    if anchor.sequence > end.sequence:
        return "the log was gone" if not end.sequence else "older than its anchor"
    if anchor.sequence == end.sequence and anchor.hash != end.hash:
        return "not the log that its anchor knows"
    return ""
