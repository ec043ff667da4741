"""`python -m livefuse`, and the `livefuse` command."""

from __future__ import annotations

import sys

from livefuse.control.process_title import hide_secrets_in_arguments


def main() -> None:
    """Run the command line and exit with its code."""
    hide_secrets_in_arguments()  # before anything slow: until then `ps` shows them
    from livefuse.control.cli import main as run_cli  # noqa: PLC0415 - slow

    sys.exit(run_cli())


if __name__ == "__main__":
    main()
