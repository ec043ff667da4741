"""A child process that receives for us, and whose standard output is read."""

from __future__ import annotations

import contextlib
import subprocess
from typing import IO, TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_JOIN_S: Final = 1.0


class ReadingChild:
    """One process; `stdout` ends when it does. Its errors go nowhere: they may hold keys.

    `stdin` is given `order` and then kept open: its end tells the child that this process is gone.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        order: bytes | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - found programs, no shell
            command,
            stdin=subprocess.DEVNULL if order is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.stdout = cast("IO[bytes]", self._process.stdout)
        if order is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(order)
                self._process.stdin.flush()

    def stop(self) -> None:
        """End the process by its own id; from any thread, returns at once. Twice is once."""
        if self._process.poll() is None:
            self._process.kill()

    def close(self) -> None:
        """End the process and give back its pipes; from the thread that reads `stdout`."""
        self.stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_JOIN_S)
        self.stdout.close()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
