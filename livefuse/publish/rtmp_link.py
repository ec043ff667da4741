"""The parent's end of an RTMP child: a process, a pipe in, lines out. Nothing but `kill` blocks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.packet import encode_info, encode_packet

if TYPE_CHECKING:
    from livefuse.packet import Packet
    from livefuse.publish.rtmp_child import Task

_MODULE: Final = "livefuse.publish.rtmp_child"
_READ_BYTES: Final = 1 << 16
_ROOT: Final = str(Path(__file__).resolve().parents[2])


class ChildLink:
    """A running child. One thread; `send` only after the last packet has gone (`is_idle`).

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, task: Task) -> None:
        path = os.pathsep.join(p for p in (_ROOT, os.environ.get("PYTHONPATH", "")) if p)
        self._process = subprocess.Popen(  # noqa: S603 - our own module, no user input in it
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": path},
            # A Ctrl-C at the terminal is for the parent, which closes the stream in order.
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("no pipe to the child")
        self._stdin = self._process.stdin
        self.stdin_fd = self._stdin.fileno()
        self.stdout_fd = self._process.stdout.fileno()
        os.set_blocking(self.stdin_fd, False)
        os.set_blocking(self.stdout_fd, False)
        self._pending = memoryview(
            encode_info(msgspec.structs.replace(task, parent_pid=os.getpid()))
        )
        self._partial = b""
        self.has_ended = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        """Whether everything given has gone into the pipe."""
        return not self._pending

    def send(self, packet: Packet) -> None:
        """Take a packet to be written by `flush`."""
        self._pending = memoryview(encode_packet(packet))

    def flush(self) -> None:
        """Write what the pipe takes now."""
        while self._pending:
            try:
                written = os.write(self.stdin_fd, self._pending)
            except BlockingIOError:
                return
            except OSError:
                # The child has gone; its last words are still to be read.
                self._pending = memoryview(b"")
                return
            self._pending = self._pending[written:]

    def read_lines(self) -> list[str]:
        """Return the complete lines that are there; `has_ended` after the last."""
        lines: list[str] = []
        while not self.has_ended:
            try:
                data = os.read(self.stdout_fd, _READ_BYTES)
            except BlockingIOError:
                break
            self.has_ended = not data
            *whole, self._partial = (self._partial + data).split(b"\n")
            lines += [line.decode("utf-8", "replace") for line in whole]
        return lines

    def end_input(self) -> None:
        """Let the child finish: it closes the connection in order and ends."""
        self._pending = memoryview(b"")
        self._stdin.close()

    def kill(self) -> None:
        """End the child at once, by its pid, and free what it held."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
