"""Is the audit log whole? Also of a copy, and while it is written.

What is found: a line that was edited, deleted, put elsewhere or added, an end that was cut off, a
head that is not ours; by the anchor outside of its folder also that all of the log is gone or an
older copy lies in its place. What cannot be found: that the whole safety folder was removed, or put
back to an earlier state; whoever fears that keeps the newest number and hash, which `livefuse audit
verify` shows, elsewhere.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from livefuse.safety.audit_files import AUDIT_FOLDER
from livefuse.safety.audit_head import find_key
from livefuse.safety.audit_read import open_view
from livefuse.safety.audit_records import (
    BROKEN,
    MENDED,
    NO_HASH,
    AuditRecord,
    parse_line,
    read_loosely,
)

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.safety.audit_anchor import Anchor, AnchorFound
    from livefuse.safety.audit_head import Head, HeadFound
    from livefuse.safety.keys import KeyRing

How = Literal[
    "edited",
    "deleted",
    "re-ordered",
    "added",
    "cut off",
    "gone",
    "older copy",
    "foreign head",
    "foreign anchor",
    "told",
]
MAX_FAULTS: Final = 50


class Fault(msgspec.Struct, frozen=True):
    """What is wrong, and where: the file, its line (from 1), the record's number (0: unknown)."""

    file: str
    line: int
    sequence: int
    how: How
    text: str


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `sequence` and `hash` are the newest record's.

    `head` and `anchor` say what their seals are worth.
    At most 50 faults are listed; `notes` are no faults: a torn line, a mended one.
    """

    is_whole: bool
    records: int
    files: int
    first: int
    sequence: int
    hash: str
    head: str
    anchor: str
    faults: list[Fault]
    notes: list[str]


def verify_audit(folder: Path, ring: KeyRing | None) -> AuditReport:
    """Check the log in `folder` whole; without `ring` its seals are not checked.

    Reads all of it, a line at a time. Writers are held up for a moment only.

    Raises:
        AuditError: it cannot be read.
    """
    with open_view(folder, ring) as view:
        walk, names = _Walk(), view.names
        for name in names:
            walk.enter(name)
            for line in view.read_lines(name):
                walk.check(line)
        is_empty = not names and view.head.state == "missing"
        if not is_empty:
            _check_ends(walk, view.head, ring)
        is_home = ring is not None and ring.folder / AUDIT_FOLDER == folder
        _check_anchor(walk, view.head.head, view.anchor, is_home=is_home)
        if is_empty and not walk.faults:
            walk.notes.append("nothing has been logged yet")
    return AuditReport(
        is_whole=not walk.faults,
        records=walk.records,
        files=len(names),
        first=walk.first,
        sequence=walk.sequence,
        hash=walk.hash,
        head=view.head.state,
        anchor=view.anchor.state,
        faults=walk.faults,
        notes=walk.notes,
    )


class _Walk:
    """Goes along the chain and notes where it does not hold."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        self.records = self.first = self.sequence = 0
        self.hash = NO_HASH
        self.ahead: deque[AuditRecord] = deque(maxlen=4096)
        self.torn = False
        self._file, self._line = "", 0
        self._missing: list[tuple[int, int, int]] = []  # from, to, which fault

    def enter(self, file: str) -> None:
        """Go on to another file."""
        self._file, self._line = file, 0

    def check(self, line: bytes) -> None:
        """Look at the next line."""
        self._line += 1
        if self.torn:
            self._check_torn()
        if not line.endswith(b"\n"):
            self.torn = True
            return
        record = parse_line(line[:-1])
        if record is None:
            self._check_edited(line[:-1])
            return
        self._check_place(record)
        self._note_own(record)
        self.records += 1
        self.first = self.first or record.sequence
        if record.sequence > self.sequence:
            self.sequence, self.hash = record.sequence, record.hash
        self.ahead.append(record)

    def add(self, how: How, text: str, sequence: int | None = None) -> None:
        """Note a fault at the line that is looked at."""
        if len(self.faults) < MAX_FAULTS:
            number = self.sequence if sequence is None else sequence
            self.faults.append(Fault(self._file, self._line, number, how, text))

    def _check_torn(self) -> None:
        """A line without its end, and another one behind it: the end was taken away."""
        self.torn = False
        self.add("edited", "the line before this one has lost its end")

    def _check_edited(self, line: bytes) -> None:
        """Go on as if it were the record that it was."""
        claimed, own = read_loosely(line) or (self.sequence + 1, "")
        self.sequence = self.sequence + 1 if self.sequence else claimed
        self.hash = own
        self.first = self.first or self.sequence
        self.add("edited", "this line does not say what was logged")

    def _check_place(self, record: AuditRecord) -> None:
        if not self.records and not self.sequence:
            return  # the first that is left: the head knows which one it has to be
        expected = self.sequence + 1
        if record.sequence > expected:
            last = record.sequence - 1
            numbers = f"record {expected} is" if last == expected else f"{expected} to {last} are"
            self._missing.append((expected, last, len(self.faults)))
            self.add("deleted", f"{numbers} missing before this line", record.sequence)
        elif record.sequence < expected:
            self._check_earlier(record)
        elif record.previous != self.hash and self.hash:
            text = "this line does not follow the one before: that was written anew"
            self.add("edited", text, record.sequence)

    def _check_earlier(self, record: AuditRecord) -> None:
        """A record that should have come before: what seemed deleted was put here."""
        number = record.sequence
        for begin, end, index in self._missing:
            if begin <= number <= end and index < len(self.faults):
                fault = self.faults[index]
                text = f"record {number} was moved away from before this line"
                self.faults[index] = msgspec.structs.replace(fault, how="re-ordered", text=text)
        self.add("re-ordered", f"record {number} comes after record {self.sequence}", number)

    def _note_own(self, record: AuditRecord) -> None:
        how = str(record.facts.get("how", ""))
        if record.event == BROKEN:
            self.add("told", f"found by livefuse when it wrote this: {how}", record.sequence)
        elif record.event == MENDED and len(self.notes) < MAX_FAULTS:
            self.notes.append(f"record {record.sequence}: the end of the log was mended ({how})")


def _check_ends(walk: _Walk, found: HeadFound, ring: KeyRing | None) -> None:
    """Compare both ends with what the head says of them."""
    if walk.torn:
        walk.notes.append("the last line is torn; the next record will tell")
    head, state = found
    if head is None or state == "foreign":
        what = "is not sealed by a key of this store" if state == "foreign" else f"is {state}"
        walk.add("foreign head", f"the head {what}: anybody may have written all of this")
        return
    if walk.first > head.first:
        walk.add("deleted", f"records {head.first} to {walk.first - 1} are missing", walk.first)
    if walk.sequence < head.sequence:
        walk.add("cut off", f"records up to {head.sequence} were logged: the end was cut off")
    elif walk.sequence == head.sequence:
        if walk.hash != head.hash:
            walk.add("edited", "the last line is not the one that was logged")
    else:
        _check_ahead(walk, head.sequence, head.hash, ring)


def _check_ahead(walk: _Walk, sequence: int, own: str, ring: KeyRing | None) -> None:
    """Look at lines that the head does not know yet: they have to be sealed, and to follow it."""
    for record in walk.ahead:
        if record.sequence == sequence and record.hash != own:
            walk.add("edited", "this line is not the one that was logged", record.sequence)
        if record.sequence <= sequence or ring is None:
            continue
        key = find_key(ring, record.seal.partition(":")[0])
        if key is None or not record.is_sealed(key):
            walk.add("added", f"record {record.sequence} was not written here", record.sequence)
            return


def _check_anchor(walk: _Walk, head: Head | None, found: AnchorFound, *, is_home: bool) -> None:
    """Compare the end with what is kept of it outside of the folder.

    A log that is not `is_home`, beside its keys, is a copy, and need not have an anchor.
    """
    anchor, state = found
    if anchor is None or state == "foreign":
        is_wanted = state != "missing" or (head is not None and head.has_anchor)
        if is_home and is_wanted:
            text = f"the anchor is {state}: this may be an older copy, or less than all of it"
            walk.add("foreign anchor", text)
        return
    if anchor.sequence > max(walk.sequence, head.sequence if head is not None else 0):
        _tell_missing(walk, anchor)
        return
    for record in walk.ahead:
        is_told = any(f.sequence == anchor.sequence and f.how == "edited" for f in walk.faults)
        if record.sequence == anchor.sequence and record.hash != anchor.hash and not is_told:
            text = f"record {anchor.sequence} is not the one that was logged: this is another log"
            walk.add("older copy", text, anchor.sequence)


def _tell_missing(walk: _Walk, anchor: Anchor) -> None:
    if walk.sequence:
        text = (
            f"records up to {anchor.sequence} were logged: the end was cut off, or an older copy "
            "was put here"
        )
        walk.add("older copy", text)
    else:
        text = f"a log of {anchor.sequence} records was here and is not; its newest was"
        walk.add("gone", f"{text} {anchor.hash}", anchor.sequence)
