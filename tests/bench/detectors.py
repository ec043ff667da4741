"""scrfd_insightface: what SCRFD costs outside its network, against insightface's `SCRFD.detect`.

Both have the same stand-in of det_10g and the same 720p picture with two faces, in one process and
one thread, in turns of a few frames each. On both sides `session.run` is replaced by the answer
that the stand-in gave to that very input, so that what is counted (CPU time of the thread) is
reading the picture, feeding, decoding and suppressing, and nothing else. insightface starts from
BGR pixels, livefuse from the decoder's planes. The figure is at insightface's usual 640x640 against
livefuse's 640x384; with insightface at 640x384 too it is told beside it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from livefuse.pipeline.analysis.scrfd import ScrfdDetector
from livefuse.runtime.session import SessionCache
from tests.bench.harness import Result, bench
from tests.faces import create_frame_by_bgr, read_bgr
from tests.standins import install_standins

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ROUNDS = 40
_IN_A_ROW = 6
_MIN_FACES = 2


class _Answered:
    """A session that gives the same answer to inputs of one shape without running again."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._answers: dict[tuple[int, ...], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, names: Any, feeds: dict[str, Any]) -> Any:
        shape = next(iter(feeds.values())).shape
        if shape not in self._answers:
            self._answers[shape] = self._session.run(names, feeds)
        return self._answers[shape]


def _draw_picture() -> np.ndarray[Any, Any]:
    """Return BGR 1280x720 of smooth noise with two red squares, which are faces to the stand-in."""
    noise = np.random.default_rng(5).normal(0, 1, (720, 1280, 3))
    bgr = np.clip(100 + 400 * cv2.GaussianBlur(noise, (0, 0), 9), 60, 140).astype(np.uint8)
    for x, y in ((300, 260), (900, 400)):
        bgr[y - 20 : y + 20, x - 20 : x + 20] = (30, 40, 200)
    return bgr


def _load_theirs(path: Path) -> Any:
    import onnxruntime
    from insightface.model_zoo.scrfd import SCRFD

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return SCRFD(str(path), _Answered(session), static_shape_sessions=False)


def _count_ms(work: Callable[[], Any]) -> float:
    started = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - started) / 1e6


@bench("scrfd_insightface")
def measure_scrfd(folder: Path) -> dict[str, Result]:
    """How many times cheaper, and the milliseconds of each."""
    sessions = SessionCache(install_standins(folder / "models", "det_10g"))
    network = sessions.get("det_10g")
    network._session = _Answered(network._session)
    ours = ScrfdDetector(network, 640, 320, 0.5)
    theirs = _load_theirs(folder / "models" / "det_10g.onnx")
    frame = create_frame_by_bgr(_draw_picture())
    bgr = read_bgr(frame)
    works: dict[str, Callable[[], Any]] = {
        "livefuse": lambda: ours.detect(frame),
        "insightface": lambda: theirs.detect(bgr, input_size=(640, 640)),
        "same_size": lambda: theirs.detect(bgr, input_size=(640, 384)),
    }
    for name, work in works.items():
        found = work()
        if len(found if name == "livefuse" else found[0]) < _MIN_FACES:
            raise RuntimeError(f"{name} found too few faces: the figure would mean nothing")
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        took: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(_ROUNDS):
            for name, work in works.items():
                took[name] += [_count_ms(work) for _ in range(_IN_A_ROW)]
    finally:
        cv2.setNumThreads(threads)
    # The least disturbed twentieth: a busy neighbour doubles the cost of the rest.
    ms = {name: sorted(values)[len(values) // 20] for name, values in took.items()}
    detail = {f"{name}_ms": round(value, 3) for name, value in ms.items()}
    detail["same_size_ratio"] = round(ms["same_size"] / ms["livefuse"], 2)
    ratio = ms["insightface"] / ms["livefuse"]
    return {"scrfd_insightface": Result(ratio, "ratio", ">= 3", detail)}
