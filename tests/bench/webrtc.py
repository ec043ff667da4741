"""webrtc_latency: a camera in Chromium to the picture that comes back, against aiortc's own way.

The camera is a clip with a counter and a face, 720p30. The page reads the counter off both videos,
its camera's and the one that comes back, and notes when each was shown: the difference is what a
person sees between the two. aiortc's way is that of its video-transform example: decode, to an
array, back, encode again for each peer (webrtc_transform.py). Both are measured in turn by one
browser, on loopback, and run as they do for users: each in a process of its own.

Judged is the same work: 720p both ways. aiortc's limit makes Chromium send 640x360 when it is let;
that is measured too and told beside (aiortc_small, small_ratio).

The page notes a picture when the browser's compositor, which works at 60 Hz, takes it: delays come
in steps of 16.7 ms, of both videos alike.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import urllib.request
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil

from tests.bench.harness import LIVEFUSE, ROOT, Result, bench, median
from tests.bench.webrtc_transform import LOOPBACK
from tests.browser import browsing, serve_text, write_camera_clip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDTH, HEIGHT, FRAMES = 1280, 720, 60
_ROUNDS = 2
_WARM_MS, _MEASURE_MS = 6000, 12_000
_PAGE = Path(__file__).parents[1] / "webrtc_page.html"
_LONGEST_MS = 1500
_NAMES = ("webrtc_latency", "webrtc_latency_p95", "webrtc_blur", "webrtc_aiortc")


class Measured(NamedTuple):
    """What a page has seen: delays in ms, how wide its pictures were in px.

    `cpu_percent` is of one core: the server's, and all of the browser's.
    """

    delays_ms: list[float]
    width_px: int
    cpu_percent: dict[str, int]

    def percentile(self, share: float) -> float:
        """Return a percentile of the delays in ms."""
        return float(np.percentile(self.delays_ms, share))


@bench(*_NAMES)
def measure_webrtc(folder: Path) -> dict[str, Result]:
    """p50 and p95 from glass to glass; ours without operations and with blur; over aiortc's."""
    clip = write_camera_clip(folder / "camera.y4m", WIDTH, HEIGHT, FRAMES)
    ways: dict[str, Callable[[Any], Measured]] = {
        "livefuse": lambda page: _through_livefuse(page, "none"),
        "aiortc": lambda page: _through_aiortc(page, keeps_size=True),
        "aiortc_small": lambda page: _through_aiortc(page, keeps_size=False),
        "blur": lambda page: _through_livefuse(page, "detect,blur"),
    }
    found: dict[str, list[Measured]] = {name: [] for name in ways}
    with browsing(clip) as context:
        for _ in range(_ROUNDS):
            for name, way in ways.items():
                page = context.new_page()
                found[name].append(way(page))
                page.close()
    p50 = {name: [one.percentile(50) for one in rounds] for name, rounds in found.items()}
    p95 = {name: [one.percentile(95) for one in rounds] for name, rounds in found.items()}
    ratios = {
        name: median([a / b for a, b in zip(p50["livefuse"], p50[name], strict=True)])
        for name in ("aiortc", "aiortc_small")
    }
    detail: dict[str, Any] = {
        f"{name}_p50_ms": round(median(values), 1) for name, values in p50.items()
    }
    detail |= {f"{name}_p95_ms": round(median(values), 1) for name, values in p95.items()}
    for name, rounds in found.items():
        detail[f"{name}_pictures"] = sum(len(one.delays_ms) for one in rounds)
        detail[f"{name}_width_px"] = min(one.width_px for one in rounds)
        detail[f"{name}_cpu_percent"] = rounds[-1].cpu_percent
    small = {"small_ratio": round(ratios["aiortc_small"], 3)}
    return {
        "webrtc_latency": Result(median(p50["livefuse"]), "ms", "<= 35", detail),
        "webrtc_latency_p95": Result(median(p95["livefuse"]), "ms", "<= 60"),
        "webrtc_blur": Result(median(p50["blur"]), "ms", "<= 60"),
        "webrtc_aiortc": Result(ratios["aiortc"], "ratio", "<= 0.5", small),
    }


def _through_livefuse(page: Any, operations: str) -> Measured:
    command = [*LIVEFUSE, "run", "--from", "whip:", "--operations", operations,
               "--set", f"ingest.canvas={WIDTH}x{HEIGHT}", "--set", "http.port=0",
               "--set", f'webrtc.addresses=["{LOOPBACK}"]',
               "--set", "http.require_key=false", "--set", "log.level=error"]  # fmt: skip
    with _running(command) as process:
        said = iter(process.stdout.readline, "")
        address = next(found[0] for line in said if (found := re.search(r"http://[\d.:]+", line)))
        threading.Thread(target=process.stdout.read, daemon=True).start()
        for kind in ("whip", "whep"):
            url = f"{address}/v1/jobs/main/{kind}"
            page.expose_function(f"answer{kind.title()}", partial(_post_offer, url))
        serve_text(page, _PAGE.read_text("utf-8"))
        page.evaluate(f"publish({WIDTH}, {HEIGHT}, false)")
        page.evaluate("watch(false)")
        return _measure(page, process.pid)


def _post_offer(url: str, sdp: str) -> str:
    headers = {"Content-Type": "application/sdp"}
    request = urllib.request.Request(url, sdp.encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text: str = answer.read().decode()
    return text


def _through_aiortc(page: Any, *, keeps_size: bool) -> Measured:
    with _running([sys.executable, "-m", "tests.bench.webrtc_transform"]) as process:

        def answer(sdp: str) -> str:
            process.stdin.write(json.dumps(sdp) + "\n")
            process.stdin.flush()
            text: str = json.loads(process.stdout.readline())
            return text

        page.expose_function("answerExchange", answer)
        serve_text(page, _PAGE.read_text("utf-8"))
        page.evaluate(f"exchange({WIDTH}, {HEIGHT}, {str(keeps_size).lower()})")
        return _measure(page, process.pid)


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator[Any]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=ROOT, **pipes) as process:  # type: ignore[call-overload] # both are pipes
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def _measure(page: Any, server: int) -> Measured:
    """Return the delays in ms of the counters that both videos have shown, and the width seen."""
    page.wait_for_timeout(_WARM_MS)
    page.evaluate("seen.raw = [], seen.out = []")
    before = _read_cpu_s(server)
    page.wait_for_timeout(_MEASURE_MS)
    cpu = {name: used - before.get(name, 0.0) for name, used in _read_cpu_s(server).items()}
    shown = {name: page.evaluate(f"seen.{name}") for name in ("raw", "out")}
    delays: list[float] = []
    started: dict[int, float] = {}
    events = [(row[1], name, row[0]) for name, rows in shown.items() for row in rows]
    for at_ms, name, counter in sorted(events):
        if counter is None:
            continue
        if name == "raw":
            started[counter] = at_ms
        elif counter in started:
            delay_ms = at_ms - started.pop(counter)
            # The clip begins again after 2 s: what is later belongs to another round.
            delays += [delay_ms] if delay_ms < _LONGEST_MS else []
    if len(delays) < 5:
        raise RuntimeError(f"only {len(delays)} pictures of {len(shown['out'])} could be matched")
    page.evaluate("hangUp()")
    share = {name: round(100_000 * used / _MEASURE_MS) for name, used in cpu.items()}
    return Measured(delays, int(median([row[2] for row in shown["out"]])), share)


def _read_cpu_s(server: int) -> dict[str, float]:
    """Return the processor time so far of the server and, in sum, of all processes of the browser.

    Chromium's are children of Playwright's driver, which is a child of this process.
    """
    found = {"server": 0.0, "browser": 0.0}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found["server" if process.pid == server else "browser"] += times.user + times.system
    return found
