"""hold_*: 720p30 with detect and blur over real servers for a minute. soak: ten minutes of demo."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from tests.bench.harness import LIVEFUSE, ROOT, Result, bench, median, read_stats
from tests.media import make_clip
from tests.wire.servers import NginxRtmp

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 60
_SOAK_S = 600
_SAMPLE_S = 5.0


@bench("hold_720_fps", "hold_720_drops", "hold_720_latency_p95_ms")
def measure_hold(folder: Path) -> dict[str, Result]:
    """RTMP in, faces covered, RTMP out: the rate is held, nothing dropped, little added."""
    clip = make_clip(folder / "face.mp4", seconds=20, size=(1280, 720), fps=30)
    stats_path = folder / "stats.json"
    run_held(
        clip,
        ["--operations", "detect,blur", "--for", str(_SECONDS), "--stats", str(stats_path)],
        _SECONDS,
    )
    stats = read_stats(stats_path)
    steps = {name: step["p50_ms"] for name, step in stats["steps"].items()}
    fps = stats["frames_out"] / (stats["frames_in"] / 30)
    return {
        "hold_720_fps": Result(30 * stats["frames_out"] / max(stats["frames_in"], 1), "fps",
                               ">= 29.9", {"frames": stats["frames_out"], "fps": round(fps, 2)}),
        "hold_720_drops": Result(float(sum(stats["dropped"].values())), "frames", "<= 0",
                                 dict(stats["dropped"])),
        "hold_720_latency_p95_ms": Result(stats["latency"]["p95_ms"], "ms", "<= 40",
                                          {"p50": stats["latency"]["p50_ms"],
                                           "p99": stats["latency"]["p99_ms"], **steps}),
    }  # fmt: skip


def run_held(clip: Path, arguments: list[str], seconds: int) -> None:
    """Run livefuse between two names of an RTMP server; `clip` is pushed at its own speed."""
    with NginxRtmp() as server:
        push = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-re", "-stream_loop", "-1", "-i", str(clip), "-c", "copy",
             "-f", "flv", server.url("in")]
        )  # fmt: skip
        try:
            while not server.is_publishing("in"):
                time.sleep(0.1)
            subprocess.run(
                [*LIVEFUSE, "run", "--from", server.url("in"), "--to", server.url("out"),
                 *arguments, "--quiet"],
                check=True, cwd=ROOT, timeout=seconds + 60,
            )  # fmt: skip
        finally:
            _end(push)


@bench("soak")
def measure_soak(folder: Path) -> dict[str, Result]:
    """Ten minutes of the demo: memory, threads and descriptors stay as they are."""
    seconds = int(os.environ.get("LIVEFUSE_SOAK_S", str(_SOAK_S)))
    process = subprocess.Popen(
        [*LIVEFUSE, "demo", "--to", str(folder / "demo.mp4"), "--for", str(seconds), "--quiet"],
        cwd=ROOT,
    )
    samples: list[tuple[float, float, int, int]] = []
    started = time.monotonic()
    try:
        while process.poll() is None:
            samples.append((time.monotonic() - started, *sample_family(process.pid)))
            time.sleep(_SAMPLE_S)
    finally:
        _end(process)
    # The first fifth is warm-up: allocators, caches.
    steady = np.array([row for row in samples if row[1] > 0][len(samples) // 5 : -1])
    slope = float(np.polyfit(steady[:, 0] / 60, steady[:, 1], 1)[0])
    half = len(steady) // 2
    growth = median(list(steady[half:, 1])) - median(list(steady[:half, 1]))
    detail = {
        "minutes": round(seconds / 60, 1),
        "slope_mb_per_min": round(slope, 3),
        "rss_mb": round(float(steady[-1, 1]), 1),
        "threads": f"{int(steady[0, 2])}..{int(steady[-1, 2])}",
        "fds": f"{int(steady[0, 3])}..{int(steady[-1, 3])}",
        "threads_fds_constant": bool(np.ptp(steady[:, 2]) == 0 and np.ptp(steady[:, 3]) <= 1),
    }
    return {"soak": Result(growth, "MB", "<= 3", detail)}


def sample_family(pid: int) -> tuple[float, int, int]:
    """Return RSS in MB, threads and descriptors of a process and its children."""
    try:
        parent = psutil.Process(pid)
        family: list[Any] = [parent, *parent.children(recursive=True)]
        rss = sum(process.memory_info().rss for process in family) / 2**20
        return rss, sum(p.num_threads() for p in family), sum(p.num_fds() for p in family)
    except psutil.Error:
        return 0.0, 0, 0


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
