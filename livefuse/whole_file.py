"""A file that is being written while others may read it: one writer, and whole writes."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import ReadableBuffer

_USUAL_MODE: Final = 0o666


class WholeFile(io.FileIO):
    """A file without a buffer whose `write` writes all: a disk that is nearly full takes a part."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write `data` to the last byte; OSError when that cannot be done."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left:
            left = left[super().write(left) or 0 :]
        return size


def open_locked(path: Path, *, overwrite: bool, mode: int = _USUAL_MODE) -> WholeFile:
    """Open for writing, at the start; what is in it stays until it is written over or cut off.

    `mode` are the rights of a file that is made. Waits for nobody, not even at a named pipe.

    Raises:
        BlockingIOError: another livefuse is writing there.
        OSError: it cannot be opened, is no plain file, or is there already (without `overwrite`).
    """
    flags = os.O_RDWR | os.O_CREAT | (0 if overwrite else os.O_EXCL)
    file = WholeFile(os.open(path, flags, mode), "r+")
    is_plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    if is_plain and lock_file(file):
        return file
    file.close()
    if is_plain:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
    raise OSError(errno.EINVAL, "not a plain file", str(path))


def lock_file(file: IO[Any] | io.FileIO) -> bool:
    """Say that we write here, until the file is closed; False when somebody else does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
