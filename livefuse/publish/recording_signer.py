"""Recordings are signed by C2PA once they are closed, so that a later change can be told.

The signature needs the whole file, so it comes at the end, by a child process (c2pa_child.py): it
writes a signed copy and puts that in the recording's place. It needs the recording's size once more
on the disk meanwhile, as much again of memory (the library has all of it in hand: 400 MB take 420),
and some time: 100 MB take 1 to 3 s of a core, 3 kB are added. One at a time for the whole process,
at low priority, the first to go when memory runs out; nobody waits for it but who closes the
output, and not for long. When it fails the recording stays as it was: whole, with all other marks.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

import livefuse
from livefuse.errors import ConfigError, LivefuseError
from livefuse.machine.processes import read_free_memory_bytes
from livefuse.publish.c2pa_child import Task
from livefuse.redact import redact_url
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import MarkConfig
    from livefuse.publish.container_mark import ContainerMark

SUFFIX: Final = ".mp4"
SIGNED: Final = "recordings_signed"
UNSIGNED: Final = "recordings_unsigned"
_MODULE: Final = "livefuse.publish.c2pa_child"
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_LEAST_S: Final = 60
_SPARE_BYTES: Final = 256 << 20
_BYTES_PER_S: Final = 2 << 20  # of a slow disk
_one_at_a_time: Final = threading.Lock()


class RecordingSigner:
    """Signs the recordings of one job. Safe from any thread.

    Args:
        config: `c2pa` says whether, `c2pa_max_mb` up to which size.
        load_chain: returns certificate chain and key as PEM; called when a recording is closed.
        count: is told `recordings_signed` or `recordings_unsigned`.
    """

    def __init__(
        self,
        config: MarkConfig,
        load_chain: Callable[[], tuple[str, str]],
        count: Callable[[str], None],
    ) -> None:
        self._rule = config.c2pa
        self._max_mb = config.c2pa_max_mb
        self._load_chain = load_chain
        self._count = count
        self._log = get_logger("publish")

    def check(self, path: Path) -> None:
        """Refuse a recording that is to be signed and cannot be.

        Raises:
            ConfigError: it is not MP4, or c2pa-python is not there.
        """
        if self._rule != "require":
            return
        if path.suffix.lower() != SUFFIX:
            raise ConfigError(
                f"{path.name} cannot be signed, and mark.c2pa asks for it",
                hint=f'record to a name that ends in {SUFFIX}, or set mark.c2pa = "auto"',
            )
        if not is_installed():
            raise ConfigError(
                "recordings are to be signed (mark.c2pa), but c2pa-python is not installed",
                hint="run  pip install 'livefuse[c2pa]'",
            )

    def will_sign(self, path: Path) -> bool:
        """Say whether a recording of this name is signed when it is closed."""
        return self._rule != "off" and path.suffix.lower() == SUFFIX and is_installed()

    def start(
        self, path: Path, mark: ContainerMark, tell: Callable[[str], None]
    ) -> threading.Thread:
        """Begin to sign a closed recording; `tell` hears of it only when it was not done."""

        def run() -> None:
            reason = self._sign(path.resolve(), mark)
            self._count(UNSIGNED if reason else SIGNED)
            if reason:
                shown = redact_url(str(path))
                self._log.warning("a recording is not signed", path=shown, cause=reason)
                tell(f"{shown} is whole but not signed: {reason}")

        thread = threading.Thread(target=run, name="livefuse-sign", daemon=True)
        thread.start()
        return thread

    def _sign(self, path: Path, mark: ContainerMark) -> str:
        """Return "" once it is signed, else why not."""
        try:
            size = path.stat().st_size
            if reason := self._find_obstacle(size):
                return reason
            chain, key = self._load_chain()
            task = Task(
                path=str(path),
                copy=str(path.with_name(f".{path.stem}.{secrets.token_hex(4)}{SUFFIX}")),
                chain=chain,
                key=key,
                job=f"{mark.job:08x}",
                install_id=mark.install_id,
                version=livefuse.__version__,
                limit_s=_LEAST_S + size // _BYTES_PER_S,
            )
        except LivefuseError as error:
            return str(error)
        except OSError as error:
            return error.strerror or "it cannot be read"
        with _one_at_a_time:
            return _run_child(task)

    def _find_obstacle(self, size: int) -> str:
        """Return what speaks against signing so much, "" when nothing does."""
        if size > self._max_mb << 20:
            return f"it has {size >> 20} MB, more than the {self._max_mb} MB of mark.c2pa_max_mb"
        free = read_free_memory_bytes()
        if free is not None and free < size + _SPARE_BYTES:
            return f"it needs {size >> 20} MB of memory, and {free >> 20} MB are free"
        return ""


@cache
def is_installed() -> bool:
    """Say whether c2pa-python is there; nothing of it is loaded."""
    return importlib.util.find_spec("c2pa") is not None


def _run_child(task: Task) -> str:
    """Return what the child says; what it leaves behind when it dies is taken away."""
    path = os.pathsep.join(p for p in (_ROOT, os.environ.get("PYTHONPATH", "")) if p)
    try:
        ended = subprocess.run(  # noqa: S603 - our own module, no user input in it
            [sys.executable, "-P", "-m", _MODULE],
            input=msgspec.msgpack.encode(task),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            timeout=task.limit_s,
            check=False,
            # A Ctrl-C at the terminal is not for it: it finishes what it has begun.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        reason = f"it took longer than {task.limit_s} s"
    except OSError as error:
        reason = f"no process can be started ({error.strerror})"
    else:
        reason = ended.stdout.decode("utf-8", "replace")
        if ended.returncode and not reason:
            reason = f"the process that signs has died ({ended.returncode})"
    if reason:
        Path(task.copy).unlink(missing_ok=True)
    return reason
