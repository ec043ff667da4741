"""A process that must not outlive its parent. Linux; elsewhere the end of a pipe has to do."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from pathlib import Path
from typing import Final

_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG, prctl(2)
_READ_BYTES: Final = 4096


def die_with_parent() -> None:
    """Let the kernel end this process with the thread that started it, wherever it is stuck."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def go_before_others() -> None:
    """Let the kernel, when memory runs out, end this process before its parent and most others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")


def check_parent(pid: int) -> None:
    """End this process at once unless `pid` is its parent: the kernel tells of later ends only."""
    if os.getppid() != pid:
        os._exit(1)


def die_with_pipe(fd: int) -> None:
    """End this process at once when the other end of the pipe `fd` is closed."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(fd, _READ_BYTES):
                pass
        os._exit(1)

    threading.Thread(target=watch, name="livefuse-parent", daemon=True).start()
