"""`livefuse serve` as a child process, for tests: asked over HTTP, killed, started again."""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Self

import psutil

from tests.apis import Answer

if TYPE_CHECKING:
    from pathlib import Path

TINY = {"source": "test:?size=160x120&fps=10", "operations": []}
SMALL = (
    "http.port=0",
    "ingest.canvas=160x120",
    "access.restrict=off",
    "publish.start=none",
    "rtmp.backoff_min_ms=100",
    "rtmp.backoff_max_ms=400",
    "daemon.warm_up=false",
    "daemon.admission=false",
)
WORKER = "livefuse.control.daemon.child"
_SPARE = ("workers_answering", r'workers{state="busy"}')
MERGE = {"Content-Type": "application/merge-patch+json"}
ON_AIR = ("running", "degraded")
"""A job that runs is one or the other, and on a busy machine now this, now that."""


class RunningDaemon:
    """One folder and the daemon that has it; `start` again after `kill` or `stop`."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.settings = (
            *SMALL,
            f"safety.folder={folder / 'safety'}",
            f"record.folder={folder / 'out'}",
            *settings,
        )
        self.config: Path | None = None
        """The file of --config; what `settings` say overrides it."""
        self.key = ""
        self.url = ""
        self.out = self.err = ""
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def launch(self) -> subprocess.Popen[bytes]:
        """Start a process, and do not wait for anything."""
        words = [word for setting in self.settings for word in ("--set", setting)]
        if self.config is not None:
            words += ["--config", str(self.config)]
        number = len(list(self.folder.glob("*.out")))
        self.out_path = self.folder / f"{number}.out"
        self.err_path = self.folder / f"{number}.err"
        # Of its own: what it leaves behind when it is killed is in the test's folder.
        runtime = self.folder / "r"
        runtime.mkdir(exist_ok=True)
        env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime) if len(str(runtime)) < 70 else ""}
        with self.out_path.open("wb") as out, self.err_path.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "livefuse", "serve", *words], stdout=out, stderr=err, env=env
            )
        # Of a test that fails nothing is left.
        atexit.register(_end, process)
        return process

    def start(self, timeout_s: float = 90.0) -> Self:
        """Start, and wait until it answers."""
        assert self.process is None, "it runs already"
        self.process = self.launch()
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(r"serves at (http://\S+)", self.out_path.read_text())):
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < deadline, self.read_log()
            time.sleep(0.02)
        self.url = found[1]
        # The key, if one was made, comes with the next line.
        deadline = time.monotonic() + 2
        while not (self.key or "http.require_key=false" in self.settings):
            if key := re.search(r"\?key=(\S+)\n", self.out_path.read_text()):
                self.key = key[1]
            elif time.monotonic() > deadline:
                break
            time.sleep(0.02)
        return self

    def read_log(self) -> str:
        """Return what it has said on both streams."""
        return self.out_path.read_text() + self.err_path.read_text()

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)
        self.process = None

    def stop(self, timeout_s: float = 30.0) -> int:
        """End it by SIGTERM; return its exit code. One that has ended is one."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
            raise

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(  # noqa: PLR0913 - what a request has
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        key: str | None = None,
        timeout_s: float = 100.0,
    ) -> Answer:
        """Send a request, JSON unless `body` is given."""
        if value is not None:
            body = json.dumps(value).encode()
        sent = {"Authorization": f"Bearer {self.key if key is None else key}"}
        sent["Content-Type"] = "application/json"
        request = urllib.request.Request(
            self.url + path, data=body, method=method, headers=sent | (headers or {})
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())

    def run_job(self, spec: dict[str, Any] | None = None, name: str | None = None) -> str:
        """Make and start a job; return its id once it is on air."""
        made = self.ask("POST", "/v1/jobs", {"id": name, "spec": spec or TINY, "start": True})
        assert made.status == 201, made.data
        job = str(made.value["id"])
        self.wait_on_air(job)
        return job

    def get_job(self, job: str) -> dict[str, Any]:
        """Return the view of a job."""
        answer = self.ask("GET", f"/v1/jobs/{job}")
        assert answer.status == 200, answer.data
        return dict(answer.value)

    def wait_on_air(self, job: str) -> dict[str, Any]:
        """Wait until the job runs, be it degraded; return its view."""
        return self.wait_state(job, *ON_AIR)

    def wait_state(self, job: str, *states: str, timeout_s: float = 30.0) -> dict[str, Any]:
        """Wait until the job is in one of `states`; return its view."""
        deadline = time.monotonic() + timeout_s
        while (view := self.get_job(job))["state"] not in states:
            assert time.monotonic() < deadline, (view["state"], view["reason"], self.read_log())
            time.sleep(0.03)
        return view

    def wait_frames(self, job: str, frames: int = 3, timeout_s: float = 30.0) -> dict[str, Any]:
        """Wait until the job has shown so many more frames; return its view."""
        deadline = time.monotonic() + timeout_s
        first: int | None = None
        while True:
            view = self.get_job(job)
            shown = (view["statistics"] or {}).get("frames_out")
            if shown is not None:
                first = shown if first is None or shown < first else first
                if shown >= first + frames:
                    return view
            assert time.monotonic() < deadline, (view, self.read_log())
            time.sleep(0.05)

    def wait_spare(self, timeout_s: float = 60.0) -> None:
        """Wait until a worker waits for a job that loses its own."""
        deadline = time.monotonic() + timeout_s
        while True:
            text = self.ask("GET", "/metrics").data.decode()
            found = [re.findall(rf"^livefuse_daemon_{n} (\d+)", text, re.MULTILINE) for n in _SPARE]
            if int(found[0][0]) > int(found[1][0]):
                return
            assert time.monotonic() < deadline, self.read_log()
            time.sleep(0.1)

    def list_workers(self) -> list[int]:
        """Return the process ids of the daemon's workers."""
        return [child.pid for child in psutil.Process(self.pid).children() if is_worker(child)]

    def find_worker(self, job: str) -> int:
        """Return the process id of the worker that runs `job`, by what the log says."""
        pids = re.findall(rf"job taken .*job={job} .*pid=(\d+)", self.err_path.read_text())
        assert pids, self.read_log()
        return int(pids[-1])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait(10)


def is_worker(process: psutil.Process) -> bool:
    """Say whether this is a worker of some daemon."""
    try:
        return WORKER in process.cmdline()
    except psutil.Error:
        return False


def list_family(pid: int) -> list[psutil.Process]:
    """Return all that a process has started, and what those have."""
    return list(psutil.Process(pid).children(recursive=True))
