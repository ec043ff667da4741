"""The daemon's folder, for one daemon at a time, and the place of its workers' sockets.

Fencing is by locks that the kernel gives back when a process ends, however it ends: the daemon
holds `daemon.lock` alone, each worker holds `workers.lock` together with the others. A new daemon
begins when both are free, so no worker of an earlier one publishes beside its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.errors import ConfigError, JobError
from livefuse.safety.folder import find_safety_folder, make_private_folder

if TYPE_CHECKING:
    from livefuse.config import Config

_PRIVATE: Final = 0o600
_PREFIX: Final = "livefuse-"
_LOOK_S: Final = 0.05
_STRANGERS_S: Final = 10.0


def find_daemon_folder(config: Config) -> Path:
    """Return where a daemon keeps its jobs; it need not be there."""
    wanted = config.daemon.folder
    if wanted:
        return Path(wanted).expanduser().absolute()
    return find_safety_folder(config.safety) / "daemon"


class DaemonFolder:
    """Held from its making until `close`.

    Raises:
        JobError: another daemon has it.
        ConfigError: it cannot be used.
    """

    def __init__(self, config: Config) -> None:
        self.path = find_daemon_folder(config)
        make_private_folder(self.path)
        self.workers_lock = self.path / "workers.lock"
        self._place_file = self.path / "sockets"
        self._lock = self._take("daemon.lock")
        try:
            self._wait_for_strangers()
            self._remove_sockets()
            self.sockets = self._make_sockets()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Give it to the next; the sockets are gone."""
        shutil.rmtree(self.sockets, ignore_errors=True)
        os.close(self._lock)

    def _take(self, name: str) -> int:
        lock = self._open(self.path / name)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = ""
            with contextlib.suppress(OSError, UnicodeDecodeError):
                pid = os.pread(lock, 32, 0).decode("ascii").strip()
            os.close(lock)
            raise JobError(
                f"another livefuse serve has the folder {self.path} (process {pid or '?'})",
                hint="stop that one, or set daemon.folder to another folder",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock

    def _wait_for_strangers(self) -> None:
        """Wait until no worker of an earlier daemon lives: each ends with its daemon, by itself."""
        lock = self._open(self.workers_lock)
        deadline = time.monotonic() + _STRANGERS_S
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise JobError(
                            "workers of an earlier livefuse serve are still there",
                            hint=f"end the processes that  fuser {self.workers_lock}  names",
                        ) from None
                    time.sleep(_LOOK_S)
                else:
                    return
        finally:
            os.close(lock)

    def _open(self, path: Path) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE)
        except OSError as error:
            raise ConfigError(
                f"cannot use the folder {self.path} ({error.strerror})", hint="set daemon.folder"
            ) from None

    def _make_sockets(self) -> Path:
        """Return a new private folder; its path is short, as those of sockets have to be."""
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        base = runtime if runtime and os.access(runtime, os.W_OK) else None
        try:
            sockets = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
            self._place_file.write_text(str(sockets), "utf-8")
        except OSError as error:
            raise ConfigError(
                f"no folder can be made for sockets ({error.strerror})", hint="set TMPDIR"
            ) from None
        return sockets

    def _remove_sockets(self) -> None:
        """Take away what a daemon that was killed has left."""
        with contextlib.suppress(OSError, ValueError):
            left = Path(self._place_file.read_text("utf-8"))
            if left.name.startswith(_PREFIX) and left.lstat().st_uid == os.getuid():
                shutil.rmtree(left, ignore_errors=True)
