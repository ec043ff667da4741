"""`python -m livefuse`, and the `livefuse` command."""

from __future__ import annotations

import os
import sys

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
    sys.exit(code)


if __name__ == "__main__":
    main()
