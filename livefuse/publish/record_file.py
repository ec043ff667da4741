"""The file behind a recording: may it be written, opened under a lock, what the next one is called.

Everything here may wait for a disk.
"""

from __future__ import annotations

import fcntl
import io
import itertools
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final

from livefuse.errors import PublishConnectError

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import ReadableBuffer

_ROOM_BYTES: Final = 4 << 20
"""Some seconds of a usual stream: with less a recording is not worth beginning again."""


class WholeFile(io.FileIO):
    """A file without a buffer whose `write` writes all: a disk that is nearly full takes a part."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write `data` to the last byte; OSError when that cannot be done."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            left = left[super().write(left) or 0 :]
        return size


def open_file(path: Path, *, overwrite: bool) -> io.FileIO:
    """Open for writing from the start, once nobody else writes there.

    Raises:
        PublishConnectError: another livefuse is writing there.
        OSError: it cannot be opened, or is there already (without `overwrite`).
    """
    file = WholeFile(path, "a" if overwrite else "x")
    if not lock_file(file):
        file.close()
        raise _explain_lock(path)
    if overwrite:
        file.close()  # "a" writes at the end only; the lock is taken again at once
        file = WholeFile(path, "r+")
        lock_file(file)
        file.truncate(0)
    return file


def lock_file(file: IO[Any] | io.FileIO) -> bool:
    """Say that we write here, until the file is closed; False when somebody else does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def find_next(path: Path) -> Path:
    """Return the first of NAME-2.mkv, NAME-3.mkv, ... that is not there."""
    names = (path.with_name(f"{path.stem}-{n}{path.suffix}") for n in itertools.count(2))
    return next(name for name in names if not name.exists())


def has_room(path: Path) -> bool:
    """Return whether the folder of `path` takes a few MB, tried by writing them."""
    try:
        with tempfile.TemporaryFile(dir=path.parent, buffering=0) as file:
            written = file.write(bytes(_ROOM_BYTES))
    except OSError:
        return False
    return written == _ROOM_BYTES


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Refuse what would fail later.

    A file is really made and taken away again: rights alone do not tell of read-only systems.

    Raises:
        PublishConnectError: the folder cannot be written, or the file is there already.
    """
    if path.is_dir():
        raise PublishConnectError(f"{path} is a folder", hint="add a file name, such as out.mp4")
    if path.exists() and not overwrite:
        raise PublishConnectError(
            f"{path} is there already", hint="choose another name, or set record.overwrite = true"
        )
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.exists():
            with path.open("ab") as file:
                is_free = lock_file(file)
            if not is_free:
                raise _explain_lock(path)
    except OSError as error:
        raise PublishConnectError(
            f"cannot write into the folder {path.parent} ({error.strerror})",
            hint="make the folder, or choose one that you may write to",
        ) from None


def _explain_lock(path: Path) -> PublishConnectError:
    return PublishConnectError(
        f"another livefuse is writing {path}", hint="choose another name, or stop that one"
    )
