"""avatar_ms, puppet_ms, background_ms: what these operations cost a frame of 720p, one thread.

CPU time of the operation alone, the median over frames, with a face of 250 px.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import cv2
import msgspec
import numpy as np

from livefuse.token import create_token
from tests.bench.harness import Result, bench, median
from tests.faces import create_face_frame, create_pipeline, create_services, read_picture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FRAMES = 24
_WARM = 4
_FACE_PX = 250


def _measure(operations: Sequence[str], name: str, source: str = "") -> list[float]:
    """Return the CPU ms of the operation `name` in each frame but the first few."""
    cv2.setNumThreads(1)
    token = msgspec.structs.replace(create_token(operations, now_epoch_s=0.0), source_face=source)
    services = create_services({"photo": read_picture()})
    pipeline = create_pipeline(services=services, every_frame=True)
    pipeline.prepare(token)
    took = []
    for index in range(_FRAMES):
        roll = 0.05 * float(np.sin(index / 3))
        frame = create_face_frame(_FACE_PX, roll=roll, pts=3000 * index)
        state = pipeline.begin(frame, token)
        for operation in operations:
            started = time.thread_time()
            pipeline.run_step(state, operation)
            if operation == name:
                took.append((time.thread_time() - started) * 1e3)
        assert not state.error, state.error
        pipeline.finish(state)
    return took[_WARM:]


def _tell(took: list[float], bound: str = "") -> Result:
    return Result(median(took), "ms", bound, {"least": round(min(took), 2)})


@bench("avatar_ms")
def measure_avatar(folder: Path) -> dict[str, Result]:
    """Cost of the dearest avatar on a face of 250 px."""
    del folder
    operations = ("detect", "align", "swap")
    by_name = {name: _measure(operations, "swap", f"avatar:{name}") for name in ("robot", "fox")}
    dearest = max(by_name, key=lambda name: median(by_name[name]))
    result = _tell(by_name[dearest])
    result.detail["avatar"] = dearest
    return {"avatar_ms": result}


@bench("puppet_ms")
def measure_puppet(folder: Path) -> dict[str, Result]:
    """Cost of a photo that moves, as the whole picture."""
    del folder
    return {"puppet_ms": _tell(_measure(("detect", "align", "puppet"), "puppet", "photo"))}


@bench("background_ms")
def measure_background(folder: Path) -> dict[str, Result]:
    """Cost of a blurred background; the network runs in every second frame."""
    del folder
    took = _measure(("background",), "background")
    mean = sum(took) / len(took)
    return {"background_ms": Result(mean, "ms", "", {"least": round(min(took), 2)})}
