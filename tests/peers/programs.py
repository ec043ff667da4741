"""Programs at both ends of a trial: a display, livefuse's own command line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Self

import cv2
import numpy as np

from tests.wire.servers import ChildServer, find_program, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_SOCKETS = Path("/tmp/.X11-unix")
_PAGE = re.compile(r"(http://\S+?)/\?key=([\w-]+)")


def need(*names: str) -> None:
    """Say what is not on this machine and end."""
    missing = [name for name in names if find_program(name) is None]
    if missing:
        sys.exit(f"not on this machine: {', '.join(missing)} (see tests/peers/__init__.py)")


class Display(ChildServer):
    """A screen that nobody sees."""

    def __init__(self, size: str = "1280x800") -> None:
        super().__init__()
        self._size = size
        numbers = (number for number in range(90, 400) if not (_SOCKETS / f"X{number}").exists())
        self._number = next(numbers)

    @property
    def name(self) -> str:
        """What goes into DISPLAY."""
        return f":{self._number}"

    def command(self) -> list[str]:
        """Return the command line."""
        return ["Xvfb", self.name, "-screen", "0", f"{self._size}x24", "-nolisten", "tcp"]

    def is_ready(self) -> bool:
        """Tell whether its socket is there."""
        return (_SOCKETS / f"X{self._number}").exists()

    def shoot(self) -> bytes:
        """Return the whole screen as PNG; nothing where ImageMagick is not installed."""
        if find_program("import") is None:
            return b""
        command = ["import", "-display", self.name, "-window", "root", "png:-"]
        return subprocess.run(command, capture_output=True, timeout=20, check=True).stdout


class Livefuse:
    """`livefuse run ...` as a person starts it, with a folder of its own for keys. For `with`."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", "livefuse", "run", *arguments]
        self._env = os.environ | {"XDG_DATA_HOME": str(folder), "PYTHONUNBUFFERED": "1"}
        self._lines: list[str] = []
        self.base = self.key = ""

    @property
    def text(self) -> str:
        """What it has printed."""
        return "".join(self._lines)

    @property
    def page(self) -> str:
        """The page's address with its key."""
        return f"{self.base}/?key={self.key}"

    def link(self, path: str, job: str = "main") -> str:
        """Return the address of what is below a job, with the key."""
        return f"{self.base}/v1/jobs/{job}/{path}?key={self.key}"

    def get(self, path: str, job: str = "main") -> bytes:
        """Fetch it."""
        with urllib.request.urlopen(self.link(path, job), timeout=60) as answer:
            return bytes(answer.read())

    def take_snapshot(self, job: str = "main") -> NDArray[np.uint8]:
        """Return the picture that it shows now, BGR."""
        data = np.frombuffer(self.get("snapshot.jpg", job), np.uint8)
        return cv2.imdecode(data, cv2.IMREAD_COLOR)  # type: ignore[return-value] # a JPEG of ours

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._env,
            cwd=Path(__file__).resolve().parents[2],
        )
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: self.base or self._process.poll() is not None, 120, "printed address")
        if not self.base:
            sys.exit(f"livefuse ended:\n{self.text}")
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Stop it as Ctrl-C does and return its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(5)

    def _read(self) -> None:
        stream = self._process.stdout
        for line in stream or ():
            self._lines.append(line)
            if found := _PAGE.search(line):
                self.key = found[2]
                self.base = found[1]


def wait_some(condition: Callable[[], object], timeout_s: float, every_s: float = 0.1) -> bool:
    """Wait until `condition()` holds, up to `timeout_s`; return whether it came to that."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True
