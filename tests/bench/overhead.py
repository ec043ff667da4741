"""frame_overhead_720_ms, _1080_ms: a frame's cost outside the networks, detect, swap and colour.

Every network gives its first answer to a shape again; the picture moves, so that following the face
has work to do. Also told, without a bound: what a restorer takes of a frame (restorer_share, R37)
and what it costs to load a network anew instead of keeping it (session_reuse, R31).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import cv2
import msgspec
import numpy as np

from livefuse.config import Config, ModelsConfig
from livefuse.pipeline.steps import Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.bench._answered import Answered, answer_again, measure_in_turns, take_medians, tell
from tests.bench.harness import Result, bench, median
from tests.bench.paste import create_scene
from tests.faces import create_frame_by_bgr, create_services, read_bgr, read_picture
from tests.standins import install_standins

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.clock import Clock

_FRAMES = 90
_WARM_UP = 15
_BOUNDS = {"720": "<= 3.1", "1080": "<= 5"}
_CROPS = {"720": (320, (1280, 720)), "1080": (480, (1920, 1080))}


class ThreadClock:
    """Counts this thread's CPU time: what a step's time is in these benches."""

    def now_ns(self) -> int:
        return time.thread_time_ns()

    def epoch_s(self) -> float:
        return 0.0


def _create_pipeline(sessions: SessionCache, **models: str) -> Pipeline:
    config = Config()
    for section, model in models.items():
        changed = msgspec.structs.replace(getattr(config, section), model=model)
        config = msgspec.structs.replace(config, **{section: changed})
    services = create_services({"me": np.ascontiguousarray(read_picture()[:300, 60:400])})
    clock: Clock = ThreadClock()
    return Pipeline(config, sessions, clock, services)


def _create_token(*operations: str) -> Any:
    token = create_token(operations, now_epoch_s=0.0)
    return msgspec.structs.replace(token, source_face="me")


def _list_pictures(bgr: Any) -> list[Any]:
    """Return the picture moved by a few px, there and back."""
    moves = [
        np.float32([[1, 0, 3 * x], [0, 1, 2 * y]]) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    size = (bgr.shape[1], bgr.shape[0])
    return [cv2.warpAffine(bgr, move, size, borderMode=cv2.BORDER_REFLECT) for move in moves]


def run_frames(
    pipeline: Pipeline, token: Any, pictures: list[Any], frames: int
) -> dict[str, float]:
    """Return the mean CPU ms of each step, and of the frame as a whole."""
    pipeline.prepare(token)
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    spent: dict[str, list[float]] = {"frame": []}
    try:
        for index in range(frames):
            frame = create_frame_by_bgr(pictures[index % len(pictures)], pts=3000 * index)
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
    return {name: sum(values) / len(values) for name, values in spent.items()}


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
        spent = run_frames(pipeline, token, _list_pictures(read_bgr(scene)), _FRAMES)
        pipeline.close()
        both = spent["detect"] + spent["swap"]
        key = f"frame_overhead_{name}_ms"
        results[key] = Result(both, "ms", _BOUNDS[name], tell(spent))
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
        pipeline = _create_pipeline(SessionCache(Config().models))
        spent = run_frames(pipeline, _create_token(*operations), pictures, 60)
        pipeline.close()
        found[name] = spent["frame"]
        if name == "with":
            found["enhance"] = spent["enhance"]
    share = 100 * (1 - found["without"] / found["with"])
    return {"restorer_share": Result(share, "%", detail=tell(found))}


@bench("session_reuse")
def measure_reuse(folder: Path) -> dict[str, Result]:
    """How many times dearer a run is when its session is made for it (R31), a 5 MB network."""
    del folder
    name, models = "facemesh_attention_478", ModelsConfig(providers="cpu")
    kept = SessionCache(models)
    feeds = {
        kept.get(name).input_names[0]: np.random.default_rng(0).random((1, 192, 192, 3), np.float32)
    }
    took = measure_in_turns(
        {
            "kept": lambda: kept.get(name).run(feeds),
            "made_anew": lambda: SessionCache(models).get(name).run(feeds),
        },
        12,
    )
    found = take_medians(took)
    detail = tell(found) | {"sessions_created": float(kept.created)}
    pairs = zip(took["made_anew"], took["kept"], strict=True)
    return {"session_reuse": Result(median([a / b for a, b in pairs]), "ratio", detail=detail)}
