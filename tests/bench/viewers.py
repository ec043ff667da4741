"""page_cost: what people who look on cost a job (C06). viewers_memory: three viewers (C27)."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import psutil

from tests.bench.harness import LIVEFUSE, ROOT, Result, bench, median

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROUNDS, _WINDOW_S = 6, 5.0
_POLLS_HZ = 5
_WARM_UP_S = 6.0
_MINUTES = 10


@contextlib.contextmanager
def _serving(*arguments: str) -> Iterator[tuple[psutil.Process, str]]:
    """Run a job whose streams are served; yields its process and live.flv's URL as printed."""
    command = [*LIVEFUSE, "run", *arguments, "--set", "http.port=0",
               "--set", "http.require_key=false"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            found = None
            while found is None:
                said = process.stdout.readline()
                if not said:
                    raise RuntimeError("livefuse has ended")
                found = re.search(r"http://\S+live\.flv", said)
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield psutil.Process(process.pid), found[0]
        finally:
            process.terminate()
            process.wait(20)


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        data: bytes = answer.read()
    return data


def _read_status(stream: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(_fetch(stream.replace("live.flv", "status")))
    return status


@contextlib.contextmanager
def _looking_on(stream: str) -> Iterator[None]:
    """A page is open, its events come, and its parts are fetched five times a second besides."""
    over = threading.Event()
    # As often as the API gives them: the page asks for less.
    events = urllib.request.urlopen(f"{stream.replace('live.flv', 'events')}?hz=5", timeout=10)

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):  # closed under our hands at the end
            while not over.is_set() and events.readline():
                pass

    def poll() -> None:
        while not over.wait(1 / _POLLS_HZ):
            _fetch(urljoin(stream, "/"))
            _read_status(stream)

    threads = [threading.Thread(target=run, daemon=True) for run in (poll, watch)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(5)
        events.close()


def _measure_window(process: psutil.Process, stream: str) -> tuple[float, float]:
    """Return the frames a second and the share of a core over one window."""
    frames, cpu, began = _read_status(stream)["frames_out"], process.cpu_times(), time.monotonic()
    time.sleep(_WINDOW_S)
    frames = _read_status(stream)["frames_out"] - frames
    now, took_s = process.cpu_times(), time.monotonic() - began
    used_s = now.user + now.system - cpu.user - cpu.system
    return frames / took_s, used_s / took_s


@bench("page_cost")
def measure_page_cost(_folder: Path) -> dict[str, Result]:
    """Frames a second with a page's events open and its parts fetched, against without (C06)."""
    quiet, watched = [], []
    with _serving("--from", "demo:?size=1280x720&fps=30") as (process, stream):
        time.sleep(_WARM_UP_S)
        for _ in range(_ROUNDS):
            quiet.append(_measure_window(process, stream))
            with _looking_on(stream):
                watched.append(_measure_window(process, stream))
    ratio = median([b[0] / a[0] for a, b in zip(quiet, watched, strict=True)])
    detail = {
        "quiet_fps": round(median([fps for fps, _ in quiet]), 2),
        "watched_fps": round(median([fps for fps, _ in watched]), 2),
        "quiet_cores": round(median([cores for _, cores in quiet]), 3),
        "watched_cores": round(median([cores for _, cores in watched]), 3),
    }
    return {"page_cost": Result(ratio, "ratio", ">= 0.98", detail)}


@bench("viewers_memory")
def measure_viewers_memory(_folder: Path) -> dict[str, Result]:
    """How much memory a 1080p job with three WebRTC viewers has after ten minutes (C27)."""
    sizes: list[float] = []
    with (
        _serving("--from", "test:?size=1920x1080&fps=30", "--operations", "none") as (job, url),
        _viewing(url.replace("live.flv", "whep"), 3) as viewers,
    ):
        time.sleep(30)
        for _ in range(_MINUTES * 6):
            sizes.append(job.memory_info().rss)
            time.sleep(10)
        seen, _ = viewers.communicate(timeout=30)
    first, last = median(sizes[:6]), median(sizes[-6:])
    detail = {
        "first_mb": round(first / 1e6, 1),
        "last_mb": round(last / 1e6, 1),
        "highest_mb": round(max(sizes) / 1e6, 1),
        "pictures_each": seen.strip(),
    }
    return {"viewers_memory": Result(last / first, "ratio", "<= 1.05", detail)}


@contextlib.contextmanager
def _viewing(url: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Have so many viewers watch by WHEP; they say what they saw when their input ends."""
    command = [sys.executable, "-m", "tests.bench.whep_viewers", url, str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as viewers:
        try:
            assert viewers.stdout is not None
            if not viewers.stdout.readline():
                raise RuntimeError("the viewers have ended")
            yield viewers
        finally:
            viewers.kill()
