"""noop_cpu_720, noop_cpu_1080: a job with no operations against ffmpeg, CPU ms a frame.

Same decoder, preset, bit rate, GOP and audio relay; file to file. A frame's cost is what a long
clip takes more than a short one, divided by the frames between; what a start takes is told apart.

All run on one core. The two of a virtual machine are often the two threads of one real core: each
then counts more CPU time for the same work while the other is busy, as ours keeps it, and ffmpeg's
single thread does not.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

from livefuse.config import EncodeConfig
from tests.bench.harness import LIVEFUSE, Result, bench, median, run_counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROUNDS = 3
_SHORT = 30


def make_source(path: Path, size: str, frames: int) -> None:
    """Write a clip with movement, grain and sound: 30 fps, H.264 without B-frames, AAC."""
    seconds = frames / 30
    picture = f"testsrc2=size={size}:rate=30:duration={seconds},noise=alls=6:allf=t"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y",
         "-f", "lavfi", "-i", picture,
         "-f", "lavfi", "-i", f"sine=frequency=300:sample_rate=48000:duration={seconds}",
         "-c:v", "libx264", "-preset", "veryfast", "-b:v", "4M", "-bf", "0", "-g", "60",
         "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest", str(path)],
        check=True, timeout=300,
    )  # fmt: skip


def ffmpeg_options(config: EncodeConfig, threads: int) -> list[str]:
    """Return ffmpeg's words for the encode that `config` describes."""
    rate = f"{config.bitrate_kbps}k"
    return [
        "-c:v", "libx264", "-preset", config.preset, "-tune", "zerolatency", "-b:v", rate,
        "-maxrate", rate, "-bufsize", rate, "-g", "60", "-bf", "0",
        "-threads", str(threads), "-c:a", "copy",
    ]  # fmt: skip


def _measure(folder: Path, name: str, size: str, frames: int) -> dict[str, Result]:
    clips = {count: folder / f"{count}.mp4" for count in (_SHORT, frames)}
    for count, clip in clips.items():
        make_source(clip, size, count)
    per_frame: dict[str, list[float]] = {"livefuse": [], "ffmpeg": []}
    start_s: dict[str, list[float]] = {"livefuse": [], "ffmpeg": []}
    for _ in range(_ROUNDS):
        for who, command in _COMMANDS.items():
            with _one_core():
                short, long = (
                    run_counted(command(clip, folder / "out.mp4")).cpu_s for clip in clips.values()
                )
            per_frame[who].append((long - short) * 1e3 / (frames - _SHORT))
            start_s[who].append(short)
    ratios = [a / b for a, b in zip(per_frame["livefuse"], per_frame["ffmpeg"], strict=True)]
    detail = {f"{who}_ms": round(median(values), 2) for who, values in per_frame.items()}
    detail |= {f"{who}_start_s": round(median(values), 2) for who, values in start_s.items()}
    return {name: Result(median(ratios), "ratio", "<= 1.1", detail)}


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process, and so the children it starts, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _livefuse(source: Path, out: Path) -> list[str]:
    return [*LIVEFUSE, "run", "--from", str(source), "--to", str(out), "--operations", "none",
            "--quiet", "--set", "record.overwrite=true"]  # fmt: skip


def _ffmpeg(source: Path, out: Path) -> list[str]:
    options = ffmpeg_options(EncodeConfig(), EncodeConfig().every_frame_threads)
    return ["ffmpeg", "-v", "error", "-y", "-threads", "1", "-i", str(source), *options, str(out)]


_COMMANDS = {"livefuse": _livefuse, "ffmpeg": _ffmpeg}


@bench("noop_cpu_720")
def measure_noop_720(folder: Path) -> dict[str, Result]:
    """CPU of a no-op job at 720p."""
    return _measure(folder, "noop_cpu_720", "1280x720", 1200)


@bench("noop_cpu_1080")
def measure_noop_1080(folder: Path) -> dict[str, Result]:
    """CPU of a no-op job at 1080p."""
    return _measure(folder, "noop_cpu_1080", "1920x1080", 600)
