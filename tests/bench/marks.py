"""mark_*: the invisible mark is found after what platforms do, never where there is none, is not
seen, and costs little.

44 scenes (tests/mark_scenes.py), a number of its own each, marked frame by frame as a job does.
What is looked at are windows of two seconds, searched blindly over all scales and both sides.
On one core mark_found takes ten minutes and mark_false twenty; with LIVEFUSE_MARK_SHARE=0.2 a
fifth of the scenes.
"""

from __future__ import annotations

import os
import sys
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from livefuse.frame import create_frame
from livefuse.publish.luma.detect import LumaDetector, fold_at_scales
from livefuse.publish.luma.embed import LumaMark
from livefuse.publish.luma.fold import join, whiten
from livefuse.publish.mark_windows import MeanPicture, take_mean
from tests.bench._answered import measure_in_turns, take_medians, take_quiet, tell
from tests.bench.harness import Result, bench
from tests.mark_chains import CHAINS, LIVE, get_luma, get_size, scale, send_through
from tests.mark_scenes import FPS, SCENES, list_frames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_KEY = 0x5EED
_OTHER_KEYS = (1,)
_WINDOW = 60
_UNMARKED_FRAMES = 96
_SLIDE = 4
_STATES = ("bare", "encoded", "small")
_ROUNDS = 30
_SIZES = {"720": (1280, 720), "1080": (1920, 1080), "portrait": (720, 1280), "360": (640, 360)}


def _choose_scenes() -> list[str]:
    """Return the names to be measured: all, or every so many."""
    share = float(os.environ.get("LIVEFUSE_MARK_SHARE", "1"))
    names = list(SCENES)
    count = max(round(len(names) * share), 1)
    return [names[i * len(names) // count] for i in range(count)]


def _list_means(buffers: list[NDArray[np.uint8]]) -> Iterator[MeanPicture]:
    """Yield windows that begin _SLIDE pictures apart, each picture whitened once."""
    groups = []
    for first in range(0, len(buffers), _SLIDE):
        lumas = [get_luma(buffer) for buffer in buffers[first : first + _SLIDE]]
        parts = [(luma.astype(np.float32), *whiten(luma)) for luma in lumas]
        groups.append([sum(planes) for planes in zip(*parts, strict=True)])
    for first in range((len(buffers) - _WINDOW) // _SLIDE):
        window = groups[first : first + _WINDOW // _SLIDE]
        luma, weighted, weights = (sum(planes) for planes in zip(*window, strict=True))
        yield MeanPicture(luma / _WINDOW, join(weighted, weights, _WINDOW), 0.0, _WINDOW / FPS)


def _measure_psnr(change: NDArray[np.int16]) -> float:
    power = float(np.mean(np.square(change, dtype=np.float32)))
    return 20 * float(np.log10(255 / np.sqrt(power)))


def _mark_scene(name: str, number: int) -> tuple[list[NDArray[np.uint8]], list[float]]:
    """Return the marked pictures of a scene, and the PSNR of each."""
    mark, psnr = LumaMark(_KEY, number), []
    frames = list_frames(SCENES[name], _WINDOW)
    for frame in frames:
        before = frame.y.astype(np.int16)
        mark.draw(frame)
        psnr.append(_measure_psnr(frame.y - before))
    return [frame.buffer for frame in frames], psnr


def _try_scene(name: str) -> tuple[dict[str, float], float]:
    """Return the score of the right number after each chain, 0 if not read, and the PSNR."""
    detector, number = LumaDetector(_KEY), zlib.crc32(name.encode())
    buffers, psnr = _mark_scene(name, number)
    sent = send_through(buffers, 1000, LIVE)
    scores = {}
    for chain, change in CHAINS.items():
        seen = detector.find(take_mean(get_luma(buffer) for buffer in change(sent)))
        scores[chain] = seen.score if seen is not None and seen.number == number else 0.0
    told = ", ".join(f"{chain} {score:.1f}" for chain, score in scores.items())
    print(f"  {name}: {min(psnr):.1f} dB; score {told}", file=sys.stderr, flush=True)
    return scores, min(psnr)


@bench("mark_found", "mark_psnr_db")
def measure_found(folder: Path) -> dict[str, Result]:
    """The number is read in 2 s after each chain; the mark is below what can be seen."""
    del folder
    tried = {name: _try_scene(name) for name in _choose_scenes()}
    tries = [score for scores, _ in tried.values() for score in scores.values()]
    detail: dict[str, Any] = {"clips": len(tried), "tries": len(tries)}
    for chain in CHAINS:
        each = [scores[chain] for scores, _ in tried.values()]
        detail[chain] = f"{sum(map(bool, each))}/{len(each)}"
        detail[f"{chain}_score_min"] = round(min(each), 1)
    detail["missed"] = ", ".join(
        f"{name}/{chain}"
        for name, (scores, _) in tried.items()
        for chain, score in scores.items()
        if not score
    )
    psnr = {name: each for name, (_, each) in tried.items()}
    worst = min(psnr, key=lambda name: psnr[name])
    return {
        "mark_found": Result(sum(map(bool, tries)) / len(tries), "share", ">= 0.99", detail),
        "mark_psnr_db": Result(psnr[worst], "dB", ">= 42",
                               {"worst": worst, "best": round(max(psnr.values()), 1),
                                "clips": len(psnr)}),
    }  # fmt: skip


def _halve(buffer: NDArray[np.uint8]) -> tuple[int, int]:
    width, height = get_size(buffer)
    return width // 2, height // 2


@bench("mark_false")
def measure_false(folder: Path) -> dict[str, Result]:
    """Unmarked windows, as drawn, encoded, and made small then: any find is a false one."""
    del folder
    detectors = {key: LumaDetector(key) for key in _OTHER_KEYS}
    false: list[str] = []
    windows, highest = 0, 0.0
    for name in _choose_scenes():
        buffers = [frame.buffer for frame in list_frames(SCENES[name], _UNMARKED_FRAMES)]
        for state in _STATES:
            if state == "encoded":
                buffers = send_through(buffers, 1000, LIVE)
            elif state == "small":
                buffers = [scale(buffer, _halve(buffer)) for buffer in buffers]
            for mean in _list_means(buffers):
                windows += 1
                folded = list(fold_at_scales(mean))
                for key, detector in detectors.items():
                    found, best = detector.search(folded)
                    highest = max(highest, best[0].score)
                    if found or detector.look_nearer(mean, best):
                        false.append(f"{name}/{state}/{key}")
        print(f"  {name}: {windows} windows, {len(false)} finds", file=sys.stderr, flush=True)
    detail = {
        "windows": windows, "keys": len(detectors), "highest_score": round(highest, 2),
        "where": ", ".join(false),
    }  # fmt: skip
    return {"mark_false": Result(float(len(false)), "finds", "<= 0", detail)}


@bench("mark_ms")
def measure_cost(folder: Path) -> dict[str, Result]:
    """What a frame pays, by the CPU time of the thread; the first frame of a size pays more."""
    del folder
    works = {}
    for name, size in _SIZES.items():
        frame, mark = create_frame(*size), LumaMark(_KEY, 1)
        noise = np.random.default_rng(1).integers(60, 180, frame.y.shape, np.uint8)
        frame.y[:] = noise
        mark.draw(frame)
        works[name] = partial(mark.draw, frame)
    took = measure_in_turns(works, _ROUNDS)
    detail = tell(take_medians(took), "median_ms")
    return {"mark_ms": Result(take_quiet(took["720"]), "ms", "<= 1.2", detail)}
