"""The audit log is read as it was at one moment: forwards to check it, backwards to show it."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.errors import AuditError, ConfigError
from livefuse.safety.audit_anchor import AnchorFound, read_anchor
from livefuse.safety.audit_files import CURRENT, find_newline, list_full_files, lock_for_reading
from livefuse.safety.audit_head import HeadFound, read_head
from livefuse.safety.audit_records import MAX_LINE_BYTES, AuditRecord, parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from livefuse.safety.keys import KeyRing

MAX_RECORDS: Final = 1000
BLOCK_BYTES: Final = 65_536
_LONGEST_BYTES: Final = 4 * MAX_LINE_BYTES


class Ends(NamedTuple):
    """What the head and the anchor say of how far the log goes."""

    head: HeadFound
    anchor: AnchorFound


class AuditView:
    """A log between two records: which files it has, and how far each is to be read.

    Only the current file is kept open: it may be given another name meanwhile, full ones stay.
    """

    def __init__(
        self, folder: Path, full: list[Path], current: IO[bytes] | None, ends: Ends
    ) -> None:
        self.head, self.anchor = ends
        self._folder = folder
        self._full = full
        self._current = current
        self._size = 0 if current is None else os.fstat(current.fileno()).st_size

    @property
    def names(self) -> list[str]:
        """The names of the files, the oldest first."""
        return [path.name for path in self._full] + [CURRENT] * (self._current is not None)

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Give the lines of a file, with their ends; the last one may be torn, and have none.

        Raises:
            AuditError: it cannot be read.
        """
        with self._open(name) as (file, size):
            file.seek(0)
            while (left := size - file.tell()) > 0:
                line = file.readline(min(left, _LONGEST_BYTES))
                if not line:
                    return
                yield line

    def read_backwards(self, name: str, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Give the whole lines of a file without their ends, the last one first.

        Raises:
            AuditError: it cannot be read.
        """
        with self._open(name) as (file, size):
            descriptor, rest = file.fileno(), b""
            end = find_newline(descriptor, size)  # what follows is torn
            if end < 0:
                return
            while end > 0:
                begin = max(0, end - block_bytes)
                first, *lines = (os.pread(descriptor, end - begin, begin) + rest).split(b"\n")
                yield from reversed(lines)
                rest, end = first[-_LONGEST_BYTES:], begin
            yield rest

    @contextlib.contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        if name == CURRENT and self._current is not None:
            yield self._current, self._size
            return
        try:
            with (self._folder / name).open("rb") as file:
                yield file, os.fstat(file.fileno()).st_size
        except OSError as error:
            raise _explain(error, self._folder / name) from None


@contextlib.contextmanager
def open_view(folder: Path, ring: KeyRing | None) -> Iterator[AuditView]:
    """Give the log in `folder` as it is now; writers are held up for a moment only.

    Raises:
        AuditError: it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        try:
            with lock_for_reading(folder):
                ends = Ends(read_head(folder, ring), read_anchor(folder, ring))
                full, current = list_full_files(folder), None
                if (folder / CURRENT).exists():
                    current = stack.enter_context((folder / CURRENT).open("rb"))
        except OSError as error:
            raise _explain(error, folder) from None
        except ConfigError as error:
            raise AuditError(error.message, hint=error.hint) from None
        yield AuditView(folder, full, current, ends)


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are wanted. `event` is a word like `job.started`, or its beginning: `job`."""

    job: str = ""
    event: str = ""
    since_epoch_s: float = 0.0

    def may_fit(self, line: bytes) -> bool:
        """Say whether it is worth while to read `line`: most are of other jobs."""
        return (not self.job or self.job.encode() in line) and (
            not self.event or self.event.encode() in line
        )

    def fits(self, record: AuditRecord) -> bool:
        """Say whether `record` is wanted."""
        is_event = record.event == self.event or record.event.startswith(f"{self.event}.")
        is_late = datetime.fromisoformat(record.time).timestamp() >= self.since_epoch_s
        return is_late and (not self.event or is_event) and (not self.job or record.job == self.job)


def read_audit(folder: Path, query: AuditQuery, limit: int = MAX_RECORDS) -> list[AuditRecord]:
    """Return the newest records that fit, the oldest first, at most `limit` and 1000.

    Lines that were altered are left out: `verify_audit` tells of them.

    Raises:
        AuditError: the log cannot be read.
    """
    with open_view(folder, None) as view:
        found = list(islice(_find(view, query), max(0, min(limit, MAX_RECORDS))))
    return found[::-1]


def _find(view: AuditView, query: AuditQuery) -> Iterator[AuditRecord]:
    for name in reversed(view.names):
        for line in view.read_backwards(name):
            record = parse_line(line) if query.may_fit(line) else None
            if record is not None and query.fits(record):
                yield record


def _explain(error: OSError, path: Path) -> AuditError:
    return AuditError(
        f"the audit log {path} cannot be read ({error.strerror or 'unusable'})",
        hint="see who may read there",
    )
