"""`python -m livefuse`, and the `livefuse` command."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from livefuse.control.console import open_missing_streams
from livefuse.control.process_title import hide_secrets_in_arguments

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its code."""
    open_missing_streams()
    # Small products are ours: threads that OpenBLAS wakes for them cost more than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        hide_secrets_in_arguments()  # before anything slow: until then `ps` shows them
        from livefuse.control.cli import main as run_cli  # noqa: PLC0415 - slow

        code = run_cli()
    except KeyboardInterrupt:  # Ctrl-C while it is still being loaded
        code = _INTERRUPTED
    _leave(code)


def _leave(code: int) -> None:
    """Exit; at once when threads are left that are inside a library and cannot be ended.

    Python takes the library away under such a thread, and the process aborts instead of exiting.
    """
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
