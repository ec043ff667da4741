"""The file behind a recording: may it be written, opened under a lock, what the next one is called.

Everything here may wait for a disk.
"""

from __future__ import annotations

import itertools
import tempfile
from typing import TYPE_CHECKING, Final

from livefuse.errors import PublishConnectError
from livefuse.whole_file import open_locked

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.whole_file import WholeFile

_ROOM_BYTES: Final = 4 << 20
"""Some seconds of a usual stream: with less a recording is not worth beginning again."""


def open_file(path: Path, *, overwrite: bool) -> WholeFile:
    """Open for writing, emptied, once nobody else writes there.

    Raises:
        PublishConnectError: another livefuse is writing there.
        OSError: it cannot be opened, or is there already (without `overwrite`).
    """
    try:
        file = open_locked(path, overwrite=overwrite)
    except BlockingIOError:
        raise _explain_lock(path) from None
    file.truncate(0)
    return file


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
            open_locked(path, overwrite=True).close()
    except BlockingIOError:
        raise _explain_lock(path) from None
    except OSError as error:
        raise PublishConnectError(
            f"cannot write {path} ({error.strerror})",
            hint="make the folder, or choose a file that you may write to",
        ) from None


def _explain_lock(path: Path) -> PublishConnectError:
    return PublishConnectError(
        f"another livefuse is writing {path}", hint="choose another name, or stop that one"
    )
