"""The victim from outside: starting it, commands to it, what it says of itself, its family."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from tests.wire.servers import HOST, find_free_port

ROOT = Path(__file__).resolve().parents[2]
# A step counts as hung after 2.5 s instead of 10, so that hangs of a few seconds meet the watchdog.
SETTINGS = ("http.require_key=false", "log.form=json", "watchdog.step_limit_ms=2500")
_OVERLOAD = "overload"
_LEAST_FPS = 5.0
OPERATIONS = {
    "blur": ["--operations", "detect,blur"],
    "avatar": ["--source-face", "avatar:robot", "--operations", "detect,align,swap,enhance"],
}


class Victim:
    """livefuse as a child process. `start` once; `end` is SIGTERM and says how it went."""

    def __init__(self, folder: Path) -> None:
        self._socket_path = folder / "victim.sock"
        self.log_path = folder / "livefuse.log"
        self.http_port = find_free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._family: dict[int, psutil.Process] = {}

    def start(self, source: str, targets: list[str], variant: str, settings: list[str]) -> None:
        """Start it; returns at once."""
        command = [sys.executable, "-m", "tests.chaos.victim", str(self._socket_path), "run"]
        command += ["--from", source, *OPERATIONS[variant]]
        for target in targets:
            command += ["--to", target]
        for setting in (f"http.port={self.http_port}", *SETTINGS, *settings):
            command += ["--set", setting]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        return self.process.pid

    def is_running(self) -> bool:
        """Tell whether it lives."""
        return self.process is not None and self.process.poll() is None

    def command(self, do: str, **details: Any) -> Any:
        """Send a command and return the answer.

        Raises:
            OSError: it does not listen, or did not answer within 5 s.
        """
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(5.0)
            link.connect(str(self._socket_path))
            with link.makefile("rw") as file:
                file.write(json.dumps({"do": do, **details}) + "\n")
                file.flush()
                return json.loads(file.readline())

    def read_status(self) -> dict[str, Any] | None:
        """Return what GET /v1/jobs/main/status says; None when it does not answer in time."""
        url = f"http://{HOST}:{self.http_port}/v1/jobs/main/status"
        try:
            with urllib.request.urlopen(url, timeout=1.0) as response:
                status: dict[str, Any] = json.loads(response.read())
                return status
        except (OSError, ValueError):
            return None

    def list_children(self) -> list[psutil.Process]:
        """Return its processes but itself; each is remembered for the end."""
        try:
            children = psutil.Process(self.pid).children(recursive=True)
        except psutil.Error:
            return []
        self._family |= {child.pid: child for child in children}
        return list(children)

    def find_sender(self, port: int) -> psutil.Process | None:
        """Return the child that is connected to `port`, if there is one."""
        for child in self.list_children():
            try:
                links = child.net_connections("tcp")
            except psutil.Error:
                continue
            if any(link.raddr and link.raddr.port == port for link in links):
                return child
        return None

    def end(self, patience_s: float = 20.0) -> dict[str, Any]:
        """SIGTERM; return exit code, how long it took, what was left of threads and children."""
        self.list_children()
        assert self.process is not None
        started_s = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code: int | None = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
            code = None
        took_s = round(time.monotonic() - started_s, 2)
        end_path = self._socket_path.with_suffix(".end")
        threads = json.loads(end_path.read_text()) if end_path.exists() else ["not told"]
        left = [child.pid for child in self._family.values() if child.is_running()]
        return {"code": code, "took_s": took_s, "threads": threads, "children": left}

    def close(self) -> None:
        """End whatever is left, by pid."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(5)
        for child in self._family.values():
            try:
                child.kill()
            except psutil.Error:
                continue


def is_good(status: dict[str, Any] | None) -> bool:
    """Tell whether a status says that all is well: pictures in and out, every output connected.

    That the machine has other work is no fault of livefuse's: pictures that are covered for want
    of time count as well.
    """
    if status is None:
        return False
    connected = all(o["connected"] for o in status["outputs"] if o["kind"] in ("rtmp", "file"))
    is_online = status["health"] == "ONLINE" or is_overloaded(status)
    return is_online and connected and status["fps_out"] >= _LEAST_FPS


def is_overloaded(status: dict[str, Any]) -> bool:
    """Tell whether pictures are covered for want of time."""
    return str(status["health_reason"]).startswith(_OVERLOAD)
