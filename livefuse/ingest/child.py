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

    One that `takes_order` waits for it on its standard input, which is then kept open: its end
    tells the child that this process is gone.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        takes_order: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - found programs, no shell
            command,
            stdin=subprocess.PIPE if takes_order else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.stdout = cast("IO[bytes]", self._process.stdout)

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def tell(self, order: bytes) -> None:
        """Give a child that waits for it its order; one that is gone hears nothing."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(order)
                self._process.stdin.flush()

    def stop(self) -> None:
        """End the process by its own id; from any thread, returns at once. Twice is once."""
        if self.is_running:
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
