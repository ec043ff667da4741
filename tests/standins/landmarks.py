"""Stand-ins of landmark networks: a ring of points that the picture's mean colours push about.

As fed: a wrong order of channels, a wrong scale or a shifted crop moves the points.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.standins.graph import GraphBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

_CELLS = 8  # mean colours along a side
_PUSH = 0.02


def draw_ring(count: int) -> np.ndarray[Any, Any]:
    """Return float32 (count, 2), fractions of the crop: an oval in its middle."""
    turn = np.linspace(0.0, 2 * np.pi, count, endpoint=False)
    return np.stack([0.5 + 0.25 * np.cos(turn), 0.5 + 0.32 * np.sin(turn)], 1).astype(np.float32)


def _add_points(graph: GraphBuilder, picture: str, size: int, values: Any, push: float) -> str:
    """Return (batch, len(values)): `values` and a little of the picture's mean colours."""
    cell = size // _CELLS
    means = graph.add_node("AveragePool", picture, kernel_shape=[cell] * 2, strides=[cell] * 2)
    count = 3 * _CELLS * _CELLS
    flat = graph.add_reshape(means, (-1, count))
    return graph.add_linear(flat, count, len(values), scale=push / np.sqrt(count), bias=values)


def build_fan(name: str, *, heatmaps: bool = True) -> onnx.ModelProto:
    """Return (1, 3, 256, 256) in 0..1 -> (1, 68, 3): x, y of a map of 64 px, score."""
    graph = GraphBuilder(name)
    picture = graph.add_input("input", (1, 3, 256, 256))
    ring = np.concatenate([draw_ring(68) * 64, np.full((68, 1), 0.9, np.float32)], axis=1)
    points = _add_points(graph, picture, 256, ring.reshape(-1), 64 * _PUSH)
    graph.add_output(graph.add_reshape(points, (1, 68, 3)), "landmarks_xyscore", (1, 68, 3))
    if heatmaps:
        small = graph.add_node("AveragePool", picture, kernel_shape=[4, 4], strides=[4, 4])
        graph.add_output(graph.add_conv(small, 3, 68), "heatmaps", (1, 68, 64, 64))
    return graph.build()


def build_68_5() -> onnx.ModelProto:
    """Return (1, 5, 2) -> (1, 68, 2), both in fractions of a crop."""
    graph = GraphBuilder("fan_68_5")
    five = graph.add_reshape(graph.add_input("input", (1, 5, 2)), (1, 10))
    points = graph.add_linear(five, 10, 136, scale=0.01, bias=draw_ring(68).reshape(-1))
    graph.add_output(graph.add_reshape(points, (1, 68, 2)), "output", (1, 68, 2))
    return graph.build()


def build_insightface(
    name: str, count: int, width: int, *, batch: int | str = "None", is_raw: bool = False
) -> onnx.ModelProto:
    """Return (batch, 3, 192, 192) -> (batch, count x width) in -1..1."""
    graph = GraphBuilder(name)
    value = picture = graph.add_input("data", (batch, 3, 192, 192))
    if is_raw:
        value = graph.add_node("Sub", picture, graph.add_constant(127.5), name="_minusscalar0")
        value = graph.add_node("Mul", value, graph.add_constant(1 / 128), name="_mulscalar0")
    # Of 1103 points the last 68 are asked for.
    told = draw_ring(count if width == 2 else 68) * 2 - 1
    ring = np.zeros((count, width), np.float32)
    ring[-len(told) :, :2] = told
    graph.add_output(
        _add_points(graph, value, 192, ring.reshape(-1), _PUSH), "fc1", (batch, count * width)
    )
    return graph.build()


def build_liveportrait() -> onnx.ModelProto:
    """Return (1, 3, 224, 224) in 0..1 -> three outputs; the third has 203 points in 0..1."""
    graph = GraphBuilder("liveportrait_203")
    picture = graph.add_input("input", (1, 3, 224, 224))
    for name, count in (("landmarks_107", 107), ("landmarks_131", 131), ("landmarks_203", 203)):
        points = _add_points(graph, picture, 224, draw_ring(count).reshape(-1), _PUSH)
        graph.add_output(points, name, (1, 2 * count))
    return graph.build()


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "2dfan4": partial(build_fan, "2dfan4"),
    "peppa_wutz": partial(build_fan, "peppa_wutz", heatmaps=False),
    "fan_68_5": build_68_5,
    "2d106det": partial(build_insightface, "2d106det", 106, 2),
    "1k3d68": partial(build_insightface, "1k3d68", 1103, 3),
    "liveportrait_203": build_liveportrait,
}
