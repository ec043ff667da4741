"""The folder of faces, consents and keys: private, written whole, one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.config import SafetyConfig

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_OTHERS: Final = 0o077
_LOCK: Final = ".lock"
_HINT: Final = "set safety.folder to a folder that you may write to"


def find_safety_folder(config: SafetyConfig) -> Path:
    """Return the configured folder, else livefuse below the user's data folder. Makes nothing."""
    if config.folder:
        return Path(config.folder).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME", "")
    # By the XDG specification a path that is not absolute does not count.
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "livefuse"


def make_private_folder(folder: Path) -> None:
    """Make `folder`, and what is missing above it, so that only its owner can look into it.

    Raises:
        ConfigError: it cannot be made.
    """
    # One by one: mkdir(parents=True) gives its mode to the last one alone.
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    try:
        for place in reversed(missing or [folder]):
            place.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    except OSError as error:
        raise _explain(error, "make the folder", folder) from None


def write_whole(path: Path, data: bytes) -> None:
    """Write `path` whole, on disc, or not at all, for its owner's eyes only.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def write_private(path: Path, data: bytes) -> None:
    """Do as `write_whole`, and say in words what is wrong.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        write_whole(path, data)
    except OSError as error:
        raise _explain(error, "write", path) from None


def read_private(path: Path, what: str, cure: str) -> bytes:
    """Return what is in `path`, which is to be its owner's alone.

    `what` says in words what it holds, `cure` what to do after `chmod` where others can read it.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: others can read it, or it cannot be read.
    """
    try:
        if path.stat().st_mode & _OTHERS:
            raise ConfigError(
                f"others can read {what} in {path}", hint=f"run  chmod 600 {path}  {cure}".rstrip()
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(
            f"cannot read {what} in {path} ({error.strerror or 'unreadable'})",
            hint="check safety.folder",
        ) from None


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make `folder` and keep other writers, threads and processes, out of it meanwhile.

    Raises:
        ConfigError: it cannot be made or locked.
    """
    make_private_folder(folder)
    path = folder / _LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE)
    except OSError as error:
        raise _explain(error, "lock", folder) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # which unlocks


def sign_file(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when `path` is written anew, or None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _explain(error: OSError, what: str, path: Path) -> ConfigError:
    return ConfigError(f"cannot {what} {path} ({error.strerror or 'unusable'})", hint=_HINT)
