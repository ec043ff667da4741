"""full_720: everything at once at 720p30 over real servers for a minute, a photo's face swapped in.

detect, align, swap (mesh), beautify (the look natural), enhance (classical); the face is 250 px.
"""

from __future__ import annotations

import math
import os
import subprocess
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import cv2
import numpy as np

from tests.bench.harness import LIVEFUSE, ROOT, Result, bench, read_stats
from tests.bench.hold import run_held
from tests.faces import ASTRONAUT, create_face_frame, create_frame_by_bgr, read_bgr

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.frame import Frame

_SECONDS = int(os.environ.get("LIVEFUSE_FULL_S", "60"))
_FACE_PX = 250
_CLIP_S = 10


@bench("full_720_fps", "full_720_drops", "full_720_latency_p95_ms")
def measure_full(folder: Path) -> dict[str, Result]:
    """RTMP in, a face replaced, made up and sharpened, RTMP out."""
    clip = make_face_clip(folder / "face.mp4")
    settings = ["--set", f"safety.folder={folder / 'private'}"]
    subprocess.run(
        [*LIVEFUSE, "faces", "enroll", str(ASTRONAUT), "--name", "astronaut",
         "--consent", "Eileen Collins (public domain), benchmarks, 10y", *settings],
        check=True, cwd=ROOT, timeout=60, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    stats_path = folder / "stats.json"
    run_held(
        clip,
        ["--source-face", "astronaut", "--look", "natural", "--operations",
         "detect,align,swap,beautify,enhance", "--for", str(_SECONDS), "--stats", str(stats_path),
         *settings],
        _SECONDS,
    )  # fmt: skip
    stats = read_stats(stats_path)
    steps = {name: step["p50_ms"] for name, step in stats["steps"].items()}
    log = [f"{entry['state']} {entry['ms']:.1f} ms" for entry in stats["token"]["log"]]
    return {
        "full_720_fps": Result(
            30 * stats["frames_out"] / max(stats["frames_in"], 1), "fps", ">= 29.9",
            {"in": stats["frames_in"], "out": stats["frames_out"], "seconds": _SECONDS},
        ),
        "full_720_drops": Result(float(sum(stats["dropped"].values())), "frames", "<= 0",
                                 {**stats["dropped"], **stats["counts"]}),
        "full_720_latency_p95_ms": Result(stats["latency"]["p95_ms"], "ms", "<= 60",
                                          {"p50": stats["latency"]["p50_ms"],
                                           "p99": stats["latency"]["p99_ms"], **steps,
                                           "token": "; ".join(log)}),
    }  # fmt: skip


def make_face_clip(
    path: Path,
    seconds: int = _CLIP_S,
    size: tuple[int, int] = (1280, 720),
    face_px: int = _FACE_PX,
) -> Path:
    """Write a clip of a real face that moves about and nods, with a tone."""
    with av.open(str(path), "w", format="mp4") as container:
        video: Any = container.add_stream("libx264", rate=30)
        video.width, video.height, video.pix_fmt = *size, "yuv420p"
        video.options = {"preset": "veryfast", "bf": "0", "g": "30", "crf": "20"}
        sound: Any = container.add_stream("aac", rate=48_000, layout="mono")
        for index in range(30 * seconds):
            # Whole turns within the clip, so that it can be repeated without a cut.
            phase = 2 * math.pi * index / (30 * seconds)
            place = 0.5 + 0.04 * math.sin(2 * phase), 0.5 + 0.02 * math.sin(3 * phase)
            frame = move_person(face_px, size, place, 0.12 * math.sin(phase))
            picture = av.VideoFrame.from_ndarray(frame.buffer, format="yuv420p")
            picture.pts, picture.time_base = index, Fraction(1, 30)
            container.mux(video.encode(picture))
        tone = 0.1 * np.sin(2 * np.pi * 440 * np.arange(48_000 * seconds) / 48_000)
        for start in range(0, len(tone), 1024):
            piece = tone[None, start : start + 1024].astype(np.float32)
            samples = av.AudioFrame.from_ndarray(piece, format="fltp", layout="mono")
            samples.sample_rate, samples.pts = 48_000, start
            container.mux(sound.encode(samples))
        container.mux(video.encode(None))
        container.mux(sound.encode(None))
    return path


def move_person(
    face_px: int, size: tuple[int, int], place: tuple[float, float], roll: float
) -> Frame:
    """Return a frame of a person who moves before a wall that does not, as before a webcam."""
    person = read_bgr(create_face_frame(face_px, size, place=place, roll=roll))
    wall = cv2.GaussianBlur(read_bgr(create_face_frame(face_px, size)), (0, 0), 24)
    mask = np.zeros(size[::-1], np.uint8)
    x, y = place[0] * size[0], place[1] * size[1]
    for dy, across, along in ((-0.05, 0.85, 1.05), (1.5, 1.5, 1.1)):  # head, shoulders
        centre = (round(x), round(y + dy * face_px))
        axes = (round(across * face_px), round(along * face_px))
        cv2.ellipse(mask, centre, axes, math.degrees(roll), 0, 360, 255, -1)
    alpha = cv2.GaussianBlur(mask, (0, 0), 6)[..., None] / 255
    frame: Frame = create_frame_by_bgr(np.uint8(wall * (1 - alpha) + person * alpha))
    return frame
