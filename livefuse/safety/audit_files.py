"""The files of the audit log. What is written here is on disc, whole, or an OSError.

<safety folder>/audit/audit.jsonl            lines are added here
                      audit-NNNNNNNNNNNN.jsonl   full ones, named by their last record
                      head.json              how far the log goes (audit_head.py)
                      torn-NNNNNNNNNNNN      what a power cut left of a line behind record N
                      .reserve               room for the last words when the disc is full
                audit-anchor.json        how far the log went, outside of it (audit_anchor.py)
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUDIT_FOLDER: Final = "audit"
CURRENT: Final = "audit.jsonl"
LOCK_FILE: Final = ".lock"
RESERVE_FILE: Final = ".reserve"
RESERVE_BYTES: Final = 65_536

_FULL_FILE: Final = re.compile(r"audit-(\d{12,})\.jsonl")
_MODE: Final = 0o600
_BLOCK_BYTES: Final = 65_536
LOCK_S: Final = 10.0
_LOOK_S: Final = 0.004


class Tail(NamedTuple):
    """The end of a file: its last whole line (None: there is none) and where what is torn begins.

    `torn_bytes` behind `whole_bytes` are no line: their end is missing.
    """

    line: bytes | None
    whole_bytes: int
    torn_bytes: int


def list_full_files(folder: Path) -> list[Path]:
    """Return the files that nothing is added to any more, the oldest first."""
    try:
        names = [name for name in os.listdir(folder) if _FULL_FILE.fullmatch(name)]  # noqa: PTH208 - names are wanted
    except OSError:
        return []
    return [folder / name for name in sorted(names, key=get_last_sequence)]


def get_last_sequence(name: str) -> int:
    """Return the number of the last record in a full file, which its name tells."""
    found = _FULL_FILE.fullmatch(name)
    return int(found[1]) if found else 0


@contextlib.contextmanager
def lock_log(folder: Path, patience_s: float = LOCK_S) -> Iterator[None]:
    """Keep other writers, threads and processes, out meanwhile; the folder is there.

    Raises:
        OSError: it cannot be locked, or is not let go of within `patience_s`.
    """
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        _wait_for(descriptor, fcntl.LOCK_EX, patience_s)
        yield
    finally:
        os.close(descriptor)  # which unlocks


@contextlib.contextmanager
def lock_for_reading(folder: Path) -> Iterator[None]:
    """Keep writers out for a moment; a copy that cannot be locked is read as it is."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            _wait_for(descriptor, fcntl.LOCK_SH, LOCK_S)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, kind: int, patience_s: float) -> None:
    """Lock, within a bound: a process that was halted may hold it for ever."""
    end_s = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end_s:
                raise OSError(errno.EBUSY, "another process holds it") from None
            time.sleep(_LOOK_S)
        else:
            return


def read_tail(path: Path) -> Tail:
    """Return the end of `path`; of a file that is not there: nothing.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            end = find_newline(file.fileno(), size) + 1
            if end == 0:
                return Tail(None, 0, size)
            begin = find_newline(file.fileno(), end - 1) + 1
            # A line has a bound; what is longer was not written here, and is no record.
            length = min(end - 1 - begin, _BLOCK_BYTES)
            return Tail(os.pread(file.fileno(), length, begin), end, size - end)
    except FileNotFoundError:
        return Tail(None, 0, 0)


def find_newline(descriptor: int, end: int) -> int:
    """Return the offset of the last newline before `end`, or -1."""
    while end > 0:
        begin = max(0, end - _BLOCK_BYTES)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found
        end = begin
    return -1


def add_bytes(path: Path, data: bytes) -> int:
    """Add `data` to `path`, on disc when this returns; return how long the file was before.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    is_new = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _MODE)
    try:
        before = os.fstat(descriptor).st_size
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)
    if is_new:
        sync_folder(path.parent)
    return before


def cut_file(path: Path, size: int) -> None:
    """Make `path` as short as it was.

    Raises:
        OSError: it cannot be.
    """
    os.truncate(path, size)


def set_aside(path: Path, tail: Tail, sequence: int) -> str:
    """Move what is torn into a file of its own; return that file's name.

    Raises:
        OSError: it cannot be written.
    """
    name = f"torn-{sequence:012d}"
    with path.open("rb") as file:
        file.seek(tail.whole_bytes)
        kept = file.read(min(tail.torn_bytes, _BLOCK_BYTES))
    add_bytes(path.with_name(name), kept)
    cut_file(path, tail.whole_bytes)
    return name


def rotate(folder: Path, last_sequence: int) -> None:
    """Close the current file under a name of its own.

    Raises:
        OSError: it cannot be.
    """
    (folder / CURRENT).rename(folder / f"audit-{last_sequence:012d}.jsonl")
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Bring the names of the files in `folder` to disc.

    Raises:
        OSError: it cannot be.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_reserve(folder: Path) -> None:
    """Keep room on the disc; it is given up by `give_up_reserve`.

    Raises:
        OSError: there is no room.
    """
    path = folder / RESERVE_FILE
    with contextlib.suppress(OSError):
        if path.stat().st_size == RESERVE_BYTES:
            return
    try:
        path.unlink(missing_ok=True)
        add_bytes(path, bytes(RESERVE_BYTES))
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def give_up_reserve(folder: Path) -> bool:
    """Free what was kept; False when there was nothing."""
    try:
        (folder / RESERVE_FILE).unlink()
    except OSError:
        return False
    return True
