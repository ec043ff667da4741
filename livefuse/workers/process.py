"""A worker as a process of its own: started, given its order, watched, ended. The parent's end.

The order, with all settings, goes over standard input, as the process list is for all to see. What
the child says of itself comes as lines of JSON by its standard output, a few a second: silence
means that it hangs. It ends with us: standard input ends then, and the kernel is told to end it
with the thread that started it. So that thread has to last as long as this process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

_ROOT: Final = str(Path(__file__).resolve().parents[2])
_MAX_BEAT_BYTES: Final = 1 << 20  # 64 jobs, each with what it says of itself
_MAX_LINE_BYTES: Final = 1 << 16


class WorkerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told at its start.

    It listens on the unix socket `socket` and answers whoever knows `secret`. `lock` is a file that
    it holds (shared) while it lives. `parent_pid` is who may be its parent.
    """

    number: int
    epoch: int
    parent_pid: int
    socket: str
    secret: str
    lock: str
    config: Config


class JobBeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job is: `phase` is the worker's word, `health` and `reason` are the job's own.

    `error` is what it has failed with, `error_type` its name in errors.py.
    """

    id: str
    phase: str
    health: str = ""
    reason: str = ""
    error: str = ""
    error_type: str = ""


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself: the first one, that it can be asked.

    `guests` are the keys that have opened sessions of WebRTC.
    """

    jobs: list[JobBeat] = []
    guests: list[str] = []


class WorkerProcess:
    """A running worker. `on_beat`, `on_line` and `on_end` are called from threads of their own.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        module: str,
        order: WorkerOrder,
        *,
        on_beat: Callable[[Beat], None],
        on_line: Callable[[str], None],
        on_end: Callable[[int], None],
    ) -> None:
        """Start `python -m module`. `on_line` is given what it logs, `on_end` its exit code."""
        path = os.pathsep.join(p for p in (_ROOT, os.environ.get("PYTHONPATH", "")) if p)
        self._process = subprocess.Popen(  # noqa: S603 - our own module, no user input in it
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
            # A Ctrl-C at the terminal is for the parent, which ends us in order.
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._on_beat, self._on_line, self._on_end = on_beat, on_line, on_end
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise OSError("no pipe to the worker")
        self._stdin = stdin
        data = msgspec.json.encode(order) + b"\n"
        for name, work in (
            ("order", lambda: self._give(data)),
            ("beats", lambda: self._read_beats(stdout)),
            ("log", lambda: self._read_log(stderr)),
        ):
            threading.Thread(
                target=work, name=f"livefuse-worker-{order.number}-{name}", daemon=True
            ).start()

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, its end waited for."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it at once, hung or not; `on_end` follows. Twice is once."""
        if self._process.poll() is None:
            self._process.kill()

    def dismiss(self) -> None:
        """Let it end by itself: what it waits for on standard input is over."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; False when it did not come. Not for a loop."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    # Threads.

    def _give(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, which is told elsewhere
            self._stdin.write(data)
            self._stdin.flush()

    def _read_beats(self, stream: IO[bytes]) -> None:
        decoder = msgspec.json.Decoder(Beat)
        with stream:
            while line := stream.readline(_MAX_BEAT_BYTES):
                try:
                    self._on_beat(decoder.decode(line))
                except msgspec.MsgspecError as error:
                    self._on_line(f"a beat of {len(line)} bytes cannot be read ({error})")
        self._end_group()
        self._on_end(self._process.wait())
        self.dismiss()

    def _end_group(self) -> None:
        """End what it has started and left behind: nothing is to hold its ports, or to publish.

        Before it is waited for: until then its number is nobody else's.
        """
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def _read_log(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(_MAX_LINE_BYTES):
                text = line.decode("utf-8", "replace").rstrip()
                if text:
                    self._on_line(text)
