"""A worker of the daemon (`python -m livefuse.control.daemon.child`): runs jobs, serves the API.

Its order comes by standard input (workers/process.py). It listens on a unix socket that the daemon
alone knows the secret of, says on standard output how its jobs are, and ends at once when the
daemon is gone: nobody would know of it any more.
"""

from __future__ import annotations

import fcntl
import os
import sys
from typing import TYPE_CHECKING, Final

from livefuse.workers.fence import (
    check_parent,
    die_with_parent,
    die_with_pipe,
    go_before_others,
)

if TYPE_CHECKING:
    from typing import BinaryIO

_IN_FD, _OUT_FD, _ERROR_FD = 0, 1, 2
_PRIVATE: Final = 0o600


def main() -> int:
    """Do what the order says until the daemon is gone."""
    die_with_parent()
    go_before_others()
    # What a library prints must not come between the lines that the daemon reads.
    beats = os.fdopen(os.dup(_OUT_FD), "wb", buffering=0)
    os.dup2(_ERROR_FD, _OUT_FD)
    line = _read_line()
    if not line.endswith(b"\n"):
        return 1
    die_with_pipe(_IN_FD)
    return _work(line, beats)


def _read_line() -> bytes:
    """Return the order: no byte more, what follows is watched."""
    data = bytearray()
    while chunk := os.read(_IN_FD, 1 << 16):
        data += chunk
        if data.endswith(b"\n"):
            break
    return bytes(data)


def _work(line: bytes, beats: BinaryIO) -> int:
    import msgspec  # noqa: PLC0415 - after the fence: loading takes its time

    from livefuse.workers.process import WorkerOrder  # noqa: PLC0415 - as above

    order = msgspec.json.decode(line, type=WorkerOrder)
    check_parent(order.parent_pid)
    held = os.open(order.lock, os.O_RDWR | os.O_CREAT, _PRIVATE)
    fcntl.flock(held, fcntl.LOCK_SH)

    from livefuse.control.daemon.child_session import run_worker  # noqa: PLC0415 - loads all

    run_worker(order, beats)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # threads may be inside of libraries, and need not come back
