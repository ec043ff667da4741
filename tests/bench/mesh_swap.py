"""What the embedded swap costs: CPU time of one thread, a face of 250 px in 1280 x 720."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import cv2
import numpy as np

from livefuse.frame import Colour
from livefuse.pipeline.effects import mesh_swap
from livefuse.pipeline.effects.mesh_light import LightMeter
from livefuse.pipeline.effects.mesh_relight import Relighter
from livefuse.pipeline.effects.mesh_render import MeshRenderer
from tests.bench.harness import Result, bench, median
from tests.faces import create_face_frame, read_bgr
from tests.sheets._people import find_mesh
from tests.sheets.swap import create_face, create_state, create_swapper

if TYPE_CHECKING:
    from pathlib import Path

_FRAMES = 90
_WARM_UP = 24
_STAGES = {
    "raster": (mesh_swap, "create_view"),
    "light": (LightMeter, "measure"),
    "warp": (MeshRenderer, "warp"),
    "weigh": (mesh_swap, "_weigh"),
    "holes": (MeshRenderer, "open_holes"),
    "relight": (Relighter, "light"),
    "lay": (MeshRenderer, "lay"),
    "statistics": (mesh_swap.MeshSwapper, "_measure"),
}


@bench("swap_mesh_ms")
def measure(folder: Path) -> dict[str, Result]:
    del folder
    cv2.setNumThreads(1)
    swapper = create_swapper()
    frame = create_face_frame(250)
    noise = np.random.default_rng(0).normal(0, 2, frame.buffer.shape)
    frame.buffer[:] = np.clip(frame.buffer + noise, 0, 255).astype(np.uint8)
    frame.colour = Colour("bt601")
    mesh, before = find_mesh(read_bgr(frame)), frame.buffer.copy()
    costs: list[float] = []
    for index in range(_FRAMES):
        frame.buffer[:] = before
        # A head is never quite still: the region's size changes from frame to frame.
        moved = mesh + np.array([0.7 * (index % 3), 0.4 * (index % 2), 0.0], np.float32)
        face = create_face(moved)
        started = time.thread_time()
        done = swapper.swap(create_state(frame, [face], 0.85), face)
        costs.append(1e3 * (time.thread_time() - started))
        assert done
    steady = costs[_WARM_UP:]
    detail = {
        "median": round(median(steady), 2),
        "least": round(min(steady), 2),
        **_measure_stages(swapper, frame, before, mesh),
    }
    mean = sum(steady) / len(steady)
    return {"swap_mesh_ms": Result(mean, "ms", "<= 10", detail)}


def _measure_stages(swapper, frame, before, mesh):
    """Return each stage's median ms."""
    spent: dict[str, list[float]] = {}
    originals = {name: getattr(*place) for name, place in _STAGES.items()}
    try:
        for name, (home, attribute) in _STAGES.items():
            setattr(home, attribute, _time(originals[name], spent.setdefault(name, [])))
        for _ in range(24):
            frame.buffer[:] = before
            face = create_face(mesh)
            swapper.swap(create_state(frame, [face], 0.85), face)
    finally:
        for name, (home, attribute) in _STAGES.items():
            setattr(home, attribute, originals[name])
    return {name: round(median(values), 2) for name, values in spent.items() if values}


def _time(function, values):
    def timed(*arguments, **keywords):
        started = time.thread_time()
        result = function(*arguments, **keywords)
        values.append(1e3 * (time.thread_time() - started))
        return result

    return timed
