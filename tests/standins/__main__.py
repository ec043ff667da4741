"""`python -m tests.standins FOLDER [NAME ...]`: write stand-ins, all or those named."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.standins import list_standins, save_standin


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or list_standins():
        path = save_standin(name, folder)
        print(f"{path}  {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
