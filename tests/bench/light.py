"""light_cpu_share: what a frame costs the processor with configs/light.toml, against the defaults.

Operations and encode in one process, in turns; processor time, so a busy machine does little harm.
Light as it is for the defaults' picture (720p), and as it is for the picture that it asks of a
camera (360p).
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from livefuse.config import load_config
from livefuse.frame import Colour
from livefuse.publish.encode import VideoEncoder
from livefuse.token import Parameters, create_token
from tests.bench.full import move_person
from tests.bench.harness import ROOT, Result, bench, median
from tests.faces import create_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import Config
    from livefuse.frame import Frame

_OPERATIONS = ("detect", "align", "beautify", "enhance")
_LARGE, _SMALL = (1280, 720), (640, 360)
_LOOK: dict[str, float | str] = {"smooth": 0.5, "slim": 0.3, "brighten": 0.3}
_FRAMES, _ROUNDS, _FIRST = 45, 5, 15


@bench("light_cpu_share", "light_cpu_share_720", "light_default_ms")
def measure_light(folder: Path) -> dict[str, Result]:
    """Return the shares of the processor time of a frame."""
    settings = ("http.enabled=false", "encode.encoder=libx264")
    default = load_config(settings=settings)
    light = load_config(ROOT / "configs" / "light.toml", settings)
    large, small = (_draw(size) for size in (_LARGE, _SMALL))
    runs = {"default": _Run(default, large), "light": _Run(light, small),
            "light_720": _Run(light, large)}  # fmt: skip
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            took[name].append(run.measure())
    ms = {name: round(median(values), 2) for name, values in took.items()}
    return {
        "light_cpu_share": Result(ms["light"] / ms["default"], "", "<= 0.55", dict(ms)),
        "light_cpu_share_720": Result(ms["light_720"] / ms["default"], "", "<= 0.8"),
        "light_default_ms": Result(ms["default"], "ms"),
    }


def _draw(size: tuple[int, int]) -> list[Frame]:
    face_px = round(250 * size[1] / 720)
    frames = []
    for index in range(_FRAMES):
        phase = 2 * math.pi * index / _FRAMES
        place = 0.5 + 0.04 * math.sin(phase), 0.5 + 0.02 * math.sin(2 * phase)
        frames.append(move_person(face_px, size, place, 0.1 * math.sin(phase)))
    return frames


class _Run:
    """One configuration's pipeline and encoder, and the frames that go through them in turn."""

    def __init__(self, config: Config, frames: list[Frame]) -> None:
        self._frames = frames
        self._pictures = [frame.buffer.copy() for frame in frames]
        self._pipeline = create_pipeline(config)
        self._token = create_token(
            _OPERATIONS, now_epoch_s=0.0, parameters=Parameters(beautify=_LOOK)
        )
        self._pipeline.prepare(self._token)
        self._encoder = VideoEncoder(
            config.encode, frames[0].width, frames[0].height, 30.0, Colour("bt601")
        )
        self._count = 0

    def measure(self) -> float:
        """Return the processor time of a frame, ms, all threads."""
        spent_s = 0.0
        for index, (frame, picture) in enumerate(zip(self._frames, self._pictures, strict=True)):
            frame.buffer[:] = picture
            frame.pts = 3000 * self._count
            self._count += 1
            started_s = time.process_time()
            self._pipeline.process(frame, self._token)
            self._encoder.encode(frame)
            if index >= _FIRST:
                spent_s += time.process_time() - started_s
        return 1000 * spent_s / (_FRAMES - _FIRST)
