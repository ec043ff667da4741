"""frame_overhead_720_ms, _1080_ms: a frame's cost outside the networks, detect, swap and colour.

Every network gives its first answer to a shape again; the picture moves, so that following the face
has work to do. Also told, without a bound: what enhancing takes of a frame (restorer_share, R37).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import cv2
import msgspec
import numpy as np

from livefuse.clock import SystemClock
from livefuse.config import Config
from livefuse.pipeline.steps import Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.bench._answered import Answered, answer_again, take_medians, take_quiet, tell
from tests.bench.harness import Result, bench, median
from tests.bench.paste import create_scene
from tests.faces import create_frame_by_bgr, create_services, read_bgr, read_picture
from tests.standins import install_standins

if TYPE_CHECKING:
    from pathlib import Path

_FRAMES = 150
_WARM_UP = 15
_TURN = Config().detect.every_n
_BOUNDS = {"720": "<= 3.1", "1080": "<= 5"}
_CROPS = {"720": (320, (1280, 720)), "1080": (480, (1920, 1080))}


class ThreadClock(SystemClock):
    """Counts this thread's CPU time: what a step's time is in these benches."""

    def now_ns(self) -> int:
        return time.thread_time_ns()


def _create_pipeline(sessions: SessionCache, **models: str) -> Pipeline:
    config = Config()
    for section, model in models.items():
        changed = msgspec.structs.replace(getattr(config, section), model=model)
        config = msgspec.structs.replace(config, **{section: changed})
    config = msgspec.structs.replace(config, models=sessions._config)
    services = create_services({"me": np.ascontiguousarray(read_picture()[:300, 60:400])})
    return Pipeline(config, sessions, ThreadClock(), services)


def _create_token(*operations: str) -> Any:
    token = create_token(operations, now_epoch_s=0.0)
    return msgspec.structs.replace(token, source_face="me")


def _list_pictures(bgr: Any) -> list[Any]:
    """Return the picture moved by a few px, there and back."""
    places = ((0, 0), (3, 0), (3, 2), (0, 2))
    moves = [np.array([[1, 0, x], [0, 1, y]], np.float32) for x, y in places]
    size = (bgr.shape[1], bgr.shape[0])
    return [cv2.warpAffine(bgr, move, size, borderMode=cv2.BORDER_REFLECT) for move in moves]


def run_frames(
    pipeline: Pipeline, token: Any, pictures: list[Any], frames: int
) -> dict[str, float]:
    """Return the mean CPU ms of each step, and of the frame as a whole; `pipeline` is prepared."""
    spent = collect_frames(pipeline, token, pictures, frames)
    return {name: sum(values) / len(values) for name, values in spent.items()}


def collect_frames(
    pipeline: Pipeline, token: Any, pictures: list[Any], frames: int
) -> dict[str, list[float]]:
    """Return every frame's CPU ms, of each step and as a whole; `pipeline` is prepared."""
    kept = [create_frame_by_bgr(picture) for picture in pictures]
    shown = [frame.buffer.copy() for frame in kept]
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    spent: dict[str, list[float]] = {"frame": []}
    try:
        for index in range(frames):
            frame = kept[index % len(kept)]
            frame.buffer[:] = shown[index % len(kept)]
            frame.pts = 3000 * index
            Answered.mend()
            started = time.thread_time_ns()
            outcome = pipeline.process(frame, token)
            took = (time.thread_time_ns() - started) / 1e6
            assert not outcome.error, outcome.error
            assert len(outcome.faces) == 1
            if index < _WARM_UP:
                continue
            spent["frame"].append(took)
            for name, ms in outcome.steps:
                spent.setdefault(name, []).append(ms)
    finally:
        cv2.setNumThreads(threads)
    return spent


def _average(values: list[float]) -> list[float]:
    """Return means over as many frames as have one detection among them."""
    starts = range(0, len(values) - _TURN + 1, _TURN)
    return [sum(values[i : i + _TURN]) / _TURN for i in starts]


@bench("frame_overhead_720_ms", "frame_overhead_1080_ms")
def measure_overhead(folder: Path) -> dict[str, Result]:
    """Detect and swap a frame, outside the networks; the mean over frames that are followed too."""
    models = install_standins(folder / "models", "inswapper_128", "w600k_r50")
    token = _create_token("detect", "align", "swap")
    results = {}
    for name, (crop_px, size) in _CROPS.items():
        sessions = SessionCache(models)
        scene, _ = create_scene("arcface_128", crop_px, size)
        pipeline = _create_pipeline(sessions, swap="inswapper_128")
        pipeline.prepare(token)
        answer_again(*sessions._networks.values())
        frames = collect_frames(pipeline, token, _list_pictures(read_bgr(scene)), _FRAMES)
        spent = {name: _average(values) for name, values in frames.items()}
        pipeline.close()
        both = [one + other for one, other in zip(spent["detect"], spent["swap"], strict=True)]
        detail = tell(take_medians(spent), "median_ms")
        quiet = take_quiet(both)
        results[f"frame_overhead_{name}_ms"] = Result(quiet, "ms", _BOUNDS[name], detail)
    return results


@bench("restorer_share")
def measure_share(folder: Path) -> dict[str, Result]:
    """The share of a frame that enhance takes, % (R37): embedded networks, all of them running."""
    del folder
    scene, _ = create_scene("ffhq_512", 480, (1280, 720))
    pictures = _list_pictures(read_bgr(scene))
    found = {}
    for name, operations in {
        "with": ("detect", "align", "swap", "enhance"),
        "without": ("detect", "align", "swap"),
    }.items():
        pipeline, token = (
            _create_pipeline(SessionCache(Config().models)),
            _create_token(*operations),
        )
        pipeline.prepare(token)
        spent = collect_frames(pipeline, token, pictures, 60)
        pipeline.close()
        found[name] = median(spent["frame"])
        if name == "with":
            found["enhance"] = median(spent["enhance"])
    share = 100 * (1 - found["without"] / found["with"])
    return {"restorer_share": Result(share, "%", detail=tell(found))}
