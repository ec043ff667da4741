"""beautify_ms: the `natural` look on a face of 250 px in 720p, CPU ms a frame in one thread.

Also what each look costs, and where natural's time goes. Masks are made on every other frame, so
frames are counted in pairs; the best and the median of many are told apart, since the two cores of
a virtual machine are often the threads of one real core.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import cv2
import numpy as np

from livefuse.frame import create_frame
from livefuse.looks import list_looks, load_look
from livefuse.pipeline.effects import beauty_painter, beauty_skin
from livefuse.pipeline.effects.beauty_amounts import resolve_amounts
from livefuse.pipeline.effects.beauty_painter import BeautyPainter
from livefuse.pipeline.effects.beauty_sitter import Sitter
from livefuse.pipeline.effects.enhance_classical import ClassicalEnhancer
from livefuse.pipeline.state import FrameState
from livefuse.token import Token
from tests.bench.harness import Result, bench
from tests.faces import analyse, create_face_frame

if TYPE_CHECKING:
    from pathlib import Path

_FRAMES = 240
_ROUNDS = 5
_STAGES = {
    "open_canvas": "shrink, skin colour, masks",
    "skin.smooth_skin": "smooth",
    "skin.even_colour": "even",
    "paint_soft": "blobs",
    "skin.fill_folds": "folds",
    "skin.lift_dark_circles": "circles",
    "change_tone": "tone",
    "paint_mouth": "mouth",
    "brighten_eyes": "eyes",
    "apply_lifts": "apply",
    "plan_warp": "field",
    "sharpen": "sharpen",
    "warp_planes": "remap",
}


def _measure(frame, do):
    """Return best and median CPU ms a frame of `do(copy)`, over pairs of frames."""
    copy = create_frame(frame.width, frame.height)
    took = []
    for _ in range(_FRAMES):
        copy.buffer[:] = frame.buffer
        started = time.thread_time()
        do(copy)
        took.append((time.thread_time() - started) * 1e3)
    pairs = np.array(took[20:]).reshape(-1, 2).mean(axis=1)
    return float(pairs.min()), float(np.median(pairs))


def _measure_look(frame, face, values):
    painter, sitter = BeautyPainter(), Sitter()
    amounts = resolve_amounts(values, frame.colour)
    return _measure(frame, lambda copy: painter.paint(copy, face, amounts, sitter, 1 / 30))


def _measure_stages(frame, face):
    """Return ms a frame by stage, natural; each stage's own call is timed."""
    spent: dict[str, float] = {}
    kept = []
    for path, label in _STAGES.items():
        owner = beauty_skin if path.startswith("skin.") else beauty_painter
        name = path.removeprefix("skin.")
        original = getattr(owner, name)
        kept.append((owner, name, original))

        def timed(*args, original=original, label=label):
            started = time.thread_time()
            result = original(*args)
            spent[label] = spent.get(label, 0.0) + (time.thread_time() - started) * 1e3
            return result

        setattr(owner, name, timed)
    try:
        _measure_look(frame, face, load_look("natural"))
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)
    return {label: round(ms / _FRAMES, 2) for label, ms in spent.items()}


@bench("beautify_ms", "beautify_looks_ms", "enhance_classical_ms")
def measure_beautify(folder: Path) -> dict[str, Result]:
    """CPU ms a frame: natural and its stages, all looks at 250 and 420 px, classical enhance."""
    del folder
    cv2.setNumThreads(1)
    scenes = {px: create_face_frame(px) for px in (250, 420)}
    faces = {px: analyse(frame).faces[0] for px, frame in scenes.items()}
    natural = load_look("natural")
    rounds = [_measure_look(scenes[250], faces[250], natural) for _ in range(_ROUNDS)]
    best, middle = min(rounds)
    stages = _measure_stages(scenes[250], faces[250])
    results = {"beautify_ms": Result(best, "ms", "<= 6", {"median": round(middle, 2), **stages})}
    looks = {}
    for look in list_looks():
        if look.parameters:
            looks[look.name] = "/".join(
                f"{_measure_look(scenes[px], faces[px], look.parameters)[0]:.1f}" for px in scenes
            )
    dearest = max(float(text.split("/")[0]) for text in looks.values())
    results["beautify_looks_ms"] = Result(dearest, "ms", "", looks)
    enhancer = ClassicalEnhancer()
    token = Token(request_id="bench", operations=("detect", "align", "enhance"))

    def enhance(copy):
        state = FrameState(copy, token, faces=[faces[250]])
        enhancer.enhance(state, faces[250], 0.5)

    best, middle = _measure(scenes[250], enhance)
    results["enhance_classical_ms"] = Result(best, "ms", "<= 5", {"median": round(middle, 2)})
    return results
