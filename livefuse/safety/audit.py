"""The audit log: who did what, when, with which face. Append-only, a chain of hashes.

What is to be done is logged first, and not done when that fails. What has happened anyway (a job
ended) is owed to the log: it is written as soon as that is possible again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter, deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.config import AuditConfig
from livefuse.errors import AuditError, ConfigError, TokenError
from livefuse.safety.actor import ITSELF, get_actor
from livefuse.safety.audit_anchor import compare_end, read_anchor, write_anchor
from livefuse.safety.audit_files import (
    AUDIT_FOLDER,
    CURRENT,
    LOCK_S,
    RESERVE_BYTES,
    add_bytes,
    cut_file,
    get_last_sequence,
    give_up_reserve,
    list_full_files,
    lock_log,
    make_reserve,
    read_tail,
    rotate,
    set_aside,
)
from livefuse.safety.audit_head import Head, HeadFound, find_key, read_head, write_head
from livefuse.safety.audit_records import (
    BROKEN,
    MENDED,
    NO_HASH,
    RESUMED,
    AuditKey,
    AuditRecord,
    draft_record,
    parse_line,
    read_loosely,
)
from livefuse.safety.folder import find_safety_folder, make_private_folder
from livefuse.safety.keys import KeyRing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.safety.audit_records import Fact

_NOTHING: Final[Mapping[str, Fact]] = MappingProxyType({})
_MAX_OWED: Final = 1000
_SHORT_LOCK_S: Final = 1.0
"""So long a stop may be held up by whoever has the log; then it is logged later."""
_HINT: Final = "make room on the disc, or see who may write there; nothing is done unlogged"


class _Place(NamedTuple):
    """Where the chain stands, and what has to be told first of how that was found."""

    head: Head
    findings: tuple[AuditRecord, ...] = ()
    has_anchor: bool = False


class AuditLog:
    """Safe from any thread; several processes may write the same log. Writes wait for the disc."""

    def __init__(self, folder: Path, clock: Clock, config: AuditConfig | None = None) -> None:
        """Take the safety folder; nothing is read or made before the first record."""
        self.folder = folder / AUDIT_FOLDER
        self.is_full = False
        """Whether the last attempt to write failed, or took the room kept for last words."""
        self._config = config or AuditConfig()
        self._clock = clock
        self._keys = KeyRing(folder, clock)
        self._lock = threading.Lock()
        self._owed: deque[AuditRecord] = deque(maxlen=_MAX_OWED)
        self._written: Counter[str] = Counter()

    def read_figures(self) -> tuple[dict[str, int], bool]:
        """Return the records written here by event, and whether the last could not be."""
        return dict(self._written.copy()), self.is_full

    def append(
        self, event: str, *, who: str = "", job: str = "", facts: Mapping[str, Fact] = _NOTHING
    ) -> None:
        """Write a record; it is on disc when this returns. `who` left out: who acts now (actor.py).

        Raises:
            AuditError: it cannot be written; what it tells of must not be done.
        """
        draft = draft_record(self._clock.epoch_s(), event, who or get_actor(), job, facts)
        with self._lock:
            self._write([*self._owed, draft], is_last_word=False)

    def owe(
        self, event: str, *, who: str = "", job: str = "", facts: Mapping[str, Fact] = _NOTHING
    ) -> None:
        """Write a record of what nobody may hold up, an end; what cannot be written is kept.

        At most 1000 are kept, the newest; their sequence tells nothing of those that are lost, but
        a full log stops what it tells of long before.
        """
        draft = draft_record(self._clock.epoch_s(), event, who or get_actor(), job, facts)
        with self._lock:
            self._owed.append(draft)
            with contextlib.suppress(AuditError):
                self._write(list(self._owed), is_last_word=True)

    def probe(self) -> bool:
        """Say whether a record could be written now, having written what is owed.

        After a failure a record is written to find out: that there was one, is told by it.
        """
        with self._lock:
            try:
                self._check_room()
                drafts = list(self._owed)
                if self.is_full:
                    drafts.append(self._note(RESUMED))
                if drafts:
                    self._write(drafts, is_last_word=False)
            except (AuditError, ConfigError, OSError):
                self.is_full = True
            return not self.is_full

    def _check_room(self) -> None:
        make_private_folder(self.folder)
        room = os.statvfs(self.folder)
        if room.f_bavail * room.f_frsize < RESERVE_BYTES or not os.access(self.folder, os.W_OK):
            raise AuditError("the disc of the audit log is full", hint=_HINT)
        with lock_log(self.folder):
            make_reserve(self.folder)

    def _write(self, drafts: list[AuditRecord], *, is_last_word: bool) -> None:
        """Write all of `drafts`, and none is owed any more; or none of them."""
        try:
            key = AuditKey.derive(*self._keys.get_current())
            make_private_folder(self.folder)
            with lock_log(self.folder, _SHORT_LOCK_S if is_last_word else LOCK_S):
                self._write_locked(drafts, key, is_last_word=is_last_word)
        except OSError as error:
            self.is_full = True
            reason = error.strerror or "unusable"
            raise AuditError(
                f"the audit log {self.folder} cannot be written ({reason})", hint=_HINT
            ) from None
        except (ConfigError, TokenError) as error:
            self.is_full = True
            raise AuditError(
                f"the audit log cannot be written: {error.message}", hint=error.hint
            ) from None
        self._owed.clear()

    def _write_locked(
        self, drafts: list[AuditRecord], key: AuditKey, *, is_last_word: bool
    ) -> None:
        try:
            with contextlib.suppress(OSError):
                make_reserve(self.folder)
            self._add(drafts, key)
        except OSError:
            if not is_last_word or not give_up_reserve(self.folder):
                raise
            self._add(drafts, key)
            self.is_full = True
        else:
            self.is_full = False

    def _add(self, drafts: list[AuditRecord], key: AuditKey) -> None:
        head, findings, has_anchor = self._find_place()
        lines = []
        for draft in (*findings, *drafts):
            record = draft.close(head.sequence + 1, head.hash, key)
            head = Head(first=head.first, sequence=record.sequence, hash=record.hash)
            lines.append(record.encode() + b"\n")
        data = b"".join(lines)
        old = self._make_way(head.sequence - len(lines), len(data))
        if old:
            head = msgspec.structs.replace(head, first=get_last_sequence(old[-1].name) + 1)
        if has_anchor:
            head = msgspec.structs.replace(head, anchored=True)
        before = add_bytes(self.folder / CURRENT, data)
        try:
            write_head(self.folder, head.close(key))
        except OSError:
            cut_file(self.folder / CURRENT, before)
            raise
        write_anchor(self.folder, head, key)
        self._written.update(draft.event for draft in (*findings, *drafts))
        for path in old:
            with contextlib.suppress(OSError):  # what stays is tried again next time
                path.unlink(missing_ok=True)

    def _make_way(self, last_sequence: int, more_bytes: int) -> list[Path]:
        """Close the current file when it is full; return the old ones that may go."""
        current = self.folder / CURRENT
        size = current.stat().st_size if current.exists() else 0
        if size and size + more_bytes > self._config.rotate_mb << 20:
            rotate(self.folder, last_sequence)
        keep, full = self._config.keep_files, list_full_files(self.folder)
        return full[: max(len(full) - keep, 0)] if keep else []

    def _find_place(self) -> _Place:
        """Return where the next record goes; what is torn is set aside."""
        found = read_head(self.folder, self._keys)
        tail = read_tail(self.folder / CURRENT)
        findings = []
        if tail.torn_bytes:
            sequence = found.head.sequence if found.head is not None else 0
            name = set_aside(self.folder / CURRENT, tail, sequence)
            findings.append(self._note(MENDED, how="torn", bytes=tail.torn_bytes, kept_in=name))
        line, full = tail.line, list_full_files(self.folder)
        if line is None and full:
            line = read_tail(full[-1]).line
        if found.state == "missing" and line is None:
            place, how = Head(first=1, sequence=0, hash=NO_HASH), ""
        else:
            place, how = self._judge(found, line or b"")
        if how:
            event = MENDED if found.state == "retired" else BROKEN
            sealed = found.head.sequence if found.head is not None else 0
            findings.append(self._note(event, how=how, sealed=sealed))
        return self._hold_anchor(place, findings)

    def _hold_anchor(self, place: Head, findings: list[AuditRecord]) -> _Place:
        """Go on from where the anchor says that the log ended, and tell when that is not here."""
        found = read_anchor(self.folder, self._keys)
        anchor, how = found.anchor, compare_end(place, found)
        if how:
            sealed = anchor.sequence if anchor is not None else 0
            findings.append(self._note(BROKEN, how=how, sealed=sealed))
        if anchor is not None and found.state != "foreign" and anchor.sequence > place.sequence:
            place = msgspec.structs.replace(place, sequence=anchor.sequence, hash=anchor.hash)
        return _Place(place, tuple(findings), has_anchor=anchor is not None)

    def _judge(self, found: HeadFound, line: bytes) -> tuple[Head, str]:
        """Return where the chain goes on, and what is wrong with its end, if anything is."""
        head, last = found.head, parse_line(line)
        sequence, own = read_loosely(line) or (0, NO_HASH)
        anchored = head.anchored if head is not None else msgspec.UNSET
        first = head.first if head is not None else 1
        end = Head(first=first, sequence=sequence, hash=own, anchored=anchored)
        if head is None or found.state == "foreign":
            return end, f"the head is {found.state}"
        if last is not None and (sequence, own) == (head.sequence, head.hash):
            how = "the head's key is retired" if found.state == "retired" else ""
            return end, how
        if last is not None and sequence > head.sequence and self._is_ours(last):
            return end, ""  # its writer was killed before it could write the head
        how = "cut off" if sequence < head.sequence else "edited"
        return msgspec.structs.replace(head, sequence=max(head.sequence, sequence)), how

    def _is_ours(self, record: AuditRecord) -> bool:
        key = find_key(self._keys, record.seal.partition(":")[0])
        return key is not None and record.is_sealed(key)

    def _note(self, event: str, **facts: Fact) -> AuditRecord:
        return draft_record(self._clock.epoch_s(), event, ITSELF, "", facts)


def open_audit(config: Config, clock: Clock) -> AuditLog:
    """Return the log that `config` names: in its safety folder, with its section [audit]."""
    return AuditLog(find_safety_folder(config.safety), clock, config.audit)
