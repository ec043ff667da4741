"""Stand-ins of restorers: each channel times a gain of its own, and dots on the template's points.

CodeFormer's adds its weight to red. Real-ESRGAN's answers with a picture two or four times larger.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from onnx import TensorProto

from livefuse.config import Config
from livefuse.runtime.registry import load_registry
from tests.standins.graph import GraphBuilder
from tests.standins.swappers import GAINS, add_dots, get_row

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

WEIGHT_GAIN: Final = 0.4
TILE_GAINS: Final = (0.9, 0.8, 0.7)


def build_restorer(name: str) -> onnx.ModelProto:
    """Return the stand-in of a restorer with a fixed size."""
    row = get_row(name)
    graph = GraphBuilder(name)
    picture = graph.add_input("input", (1, 3, row.size, row.size))
    gains = np.diag(GAINS).astype(np.float32)[:, :, None, None]
    value = graph.add_conv(picture, 3, 3, weights=gains)
    value = add_dots(graph, value, row.template, row.size, 2.0)
    if row.family == "codeformer":
        weight = graph.add_input("weight", (1,), TensorProto.DOUBLE)
        single = graph.add_node("Cast", weight, to=TensorProto.FLOAT)
        red = graph.add_constant(np.array([WEIGHT_GAIN, 0, 0], np.float32).reshape(1, 3, 1, 1))
        value = graph.add_node("Add", value, graph.add_node("Mul", single, red))
    graph.add_output(value, "output", (1, 3, row.size, row.size))
    return graph.build()


def build_upscaler(name: str, factor: int) -> onnx.ModelProto:
    """Return the stand-in of an upscaler of any size."""
    graph = GraphBuilder(name)
    picture = graph.add_input("input", (1, 3, "h", "w"))
    gains = np.diag(TILE_GAINS).astype(np.float32)[:, :, None, None]
    value = graph.add_conv(picture, 3, 3, weights=gains)
    scales = graph.add_constant([1.0, 1.0, factor, factor])
    value = graph.add_node("Resize", value, "", scales, mode="nearest")
    graph.add_output(value, "output", (1, 3, "h2", "w2"))
    return graph.build()


RESTORERS: Final = tuple(
    row.name
    for row in load_registry(Config().models).list_models()
    if row.task == "enhance" and row.family != "real_esrgan"
)
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: partial(build_restorer, name) for name in RESTORERS},
    "real_esrgan_x2": partial(build_upscaler, "real_esrgan_x2", 2),
    "real_esrgan_x4": partial(build_upscaler, "real_esrgan_x4", 4),
}
