"""What was seen, one line each, and the pictures of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import cv2

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

OUT = Path(__file__).resolve().parents[2] / "out" / "peers"


class Report:
    """Collects what was asserted; `end` gives the exit status."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failed = 0
        OUT.mkdir(parents=True, exist_ok=True)

    def say(self, text: str) -> None:
        """Print something that was found out."""
        print(f"      {text}", flush=True)

    def check(self, is_so: object, what: str, found: object = "") -> bool:
        """Print whether `what` was so, and what was found."""
        self._failed += not is_so
        said = f": {found}" if found not in ("", None) else ""
        print(f"{'ok  ' if is_so else 'FAIL'}  {what}{said}", flush=True)
        return bool(is_so)

    def keep(self, name: str, picture: bytes | NDArray) -> Path:  # type: ignore[type-arg] # a BGR picture
        """Write a picture (BGR, or a whole PNG) and return where it lies."""
        path = OUT / f"{self._name}_{name}.png"
        if isinstance(picture, bytes):
            path.write_bytes(picture)
        else:
            cv2.imwrite(str(path), picture)
        return path

    def end(self) -> int:
        """Return the exit status."""
        print(f"{self._name}: {self._failed or 'nothing'} failed; pictures in {OUT}", flush=True)
        return min(self._failed, 1)


def run(name: str, work: Callable[[Report], None]) -> None:
    """Run `work` and end the process by what it reported."""
    report = Report(name)
    work(report)
    sys.exit(report.end())
