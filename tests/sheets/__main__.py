"""`python -m tests.sheets [FOLDER] [NAME ...]`: write a PNG of each sheet, print where.

A sheet is a module of this folder with `draw_sheet()`, which returns BGR (height, width, 3).
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import cv2


def main(arguments):
    """Draw the named sheets, or all, into the folder (out/sheets)."""
    folder = Path(arguments[0] if arguments else "out/sheets")
    known = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem[0] != "_")
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or known:
        if name not in known:
            return f"no sheet {name}: choose from {', '.join(known)}"
        sheet = importlib.import_module(f"tests.sheets.{name}").draw_sheet()
        path = folder / f"{name}.png"
        cv2.imwrite(str(path), sheet)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
