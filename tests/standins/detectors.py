"""Stand-ins of face detectors: each cell that is red is a face.

What a cell says is a linear function of its mean colour as the network is fed it, so that a wrong
order of channels, a wrong scale, stride, anchor or order of points shows in boxes and points.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.standins.graph import GraphBuilder, draw_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

# Of a face, in cells from the cell: left, top, right, bottom, and the five points.
SPAN = (2.0, 2.5, 2.2, 3.0)
POINTS = (-0.9, -0.8, 0.9, -0.7, 0.1, 0.2, -0.7, 1.2, 0.8, 1.3)
RED = np.array([1.0, -0.5, -0.5], np.float32)  # of R, G, B
_ANCHOR_STEP = 0.25  # of the second anchor's logit and span


def _draw_colour_weights(name: str, count: int, scale: float, *, bgr: bool) -> Any:
    weights = draw_weights(name, (count, 3), scale)
    return weights[:, ::-1].copy() if bgr else weights


class _Cells:
    """The mean colour of each cell of one stride, and linear heads on it."""

    def __init__(self, graph: GraphBuilder, picture: str, stride: int, anchors: int) -> None:
        self.graph, self.stride, self.anchors = graph, stride, anchors
        self.mean = graph.add_node(
            "AveragePool", picture, kernel_shape=[stride] * 2, strides=[stride] * 2
        )

    def add_head(self, weights: Any, bias: Any, *, sigmoid: bool = False) -> str:
        """Return (cells x anchors, width): `weights` is (anchors x width, 3)."""
        kernel = np.asarray(weights, np.float32)[:, :, None, None]
        value = self.graph.add_conv(self.mean, 3, len(kernel), weights=kernel, bias=bias)
        if sigmoid:
            value = self.graph.add_node("Sigmoid", value)
        value = self.graph.add_transpose(value, (0, 2, 3, 1))
        return self.graph.add_reshape(value, (-1, len(kernel) // self.anchors))

    def add_score(self, gain: float, offset: float, *, bgr: bool = False) -> str:
        """Return a score near 1 where the cell is red: sigmoid(gain x redness + offset)."""
        red = RED[::-1] if bgr else RED
        weights = np.stack([red * gain] * self.anchors)
        bias = [offset - _ANCHOR_STEP * index for index in range(self.anchors)]
        return self.add_head(weights, bias, sigmoid=True)

    def add_values(
        self, name: str, base: Any, scale: float, *, bgr: bool = False, step: float = _ANCHOR_STEP
    ) -> str:
        """Return `base` + drawn weights x colour."""
        base = np.asarray(base, np.float32)
        count = len(base) * self.anchors
        bias = np.concatenate([base * (1 + step * index) for index in range(self.anchors)])
        return self.add_head(
            _draw_colour_weights(f"{name}:{self.stride}", count, scale, bgr=bgr), bias
        )


def build_scrfd(
    name: str,
    *,
    outputs: int = 9,
    side: int = 0,
    batched: bool = False,
    names: tuple[str, ...] = (),
) -> onnx.ModelProto:
    """Return SCRFD's shape: scores, boxes and perhaps points of each stride, in that order."""
    strides, anchors = ((8, 16, 32), 2) if outputs in (6, 9) else ((8, 16, 32, 64, 128), 1)
    graph = GraphBuilder(name)
    sides = (side, side) if side else ("?", "?")
    picture = graph.add_input("input.1", (1, 3, *sides))
    cells = [_Cells(graph, picture, stride, anchors) for stride in strides]
    kinds = [
        ([each.add_score(6.0, -4.0) for each in cells], 1),
        ([each.add_values(f"{name}:span", SPAN, 0.1) for each in cells], 4),
        ([each.add_values(f"{name}:points", POINTS, 0.1) for each in cells], 10),
    ]
    count = 0
    for values, width in kinds[: outputs // len(strides)]:
        for value in values:
            shape: tuple[int | str, ...] = ("n", width)
            if batched:
                value, shape = graph.add_reshape(value, (1, -1, width)), (1, "n", width)  # noqa: PLW2901
            graph.add_output(value, names[count] if names else f"out_{count}", shape)
            count += 1
    return graph.build()


def build_prior_retinaface(name: str) -> onnx.ModelProto:
    """Return RetinaFace with priors: all strides in one list of offsets, classes, points; BGR."""
    graph = GraphBuilder(name)
    picture = graph.add_input("input", (1, 3, "height", "width"))
    cells = [_Cells(graph, picture, stride, 2) for stride in (8, 16, 32)]
    parts: dict[str, list[str]] = {"loc": [], "conf": [], "landms": []}
    for each in cells:
        parts["loc"].append(each.add_values(f"{name}:span", (0.2, -0.3, 1.0, 1.5), 2e-3, bgr=True))
        face = each.add_score(6.0 / 128, -4.0, bgr=True)
        other = graph.add_node("Sub", graph.add_constant([1.0]), face)
        parts["conf"].append(graph.add_node("Concat", other, face, axis=1))
        parts["landms"].append(each.add_values(f"{name}:points", POINTS, 2e-3, bgr=True))
    for kind, width in (("loc", 4), ("conf", 2), ("landms", 10)):
        joined = graph.add_node("Concat", *parts[kind], axis=0)
        graph.add_output(graph.add_reshape(joined, (1, -1, width)), kind, (1, "n", width))
    return graph.build()


def build_yoloface(name: str) -> onnx.ModelProto:
    """Return YOLOv8-face's shape: (1, 20, 8400), centre, size, score, five (x, y, sure)."""
    graph = GraphBuilder(name)
    picture = graph.add_input("images", (1, 3, 640, 640))
    levels = []
    for stride in (8, 16, 32):
        cells = _Cells(graph, picture, stride, 1)
        side = 640 // stride
        rows, columns = np.divmod(np.arange(side * side), side)
        at = np.stack([columns, rows], axis=1) + 0.5
        place = graph.add_constant(at * stride)
        scale = graph.add_constant([stride])
        shift = cells.add_values(f"{name}:shift", (0.2, 0.3), 0.1)
        centre = graph.add_node("Add", graph.add_node("Mul", shift, scale), place)
        size = graph.add_node("Mul", cells.add_values(f"{name}:size", (4.0, 5.0), 0.1), scale)
        parts = [centre, size, cells.add_score(12.0, -4.0)]
        for index in range(5):
            offset = cells.add_values(f"{name}:p{index}", POINTS[2 * index : 2 * index + 2], 0.1)
            parts.append(graph.add_node("Add", graph.add_node("Mul", offset, scale), place))
            parts.append(cells.add_score(6.0, 0.0))
        levels.append(graph.add_node("Concat", *parts, axis=1))
    joined = graph.add_transpose(graph.add_node("Concat", *levels, axis=0), (1, 0))
    graph.add_output(graph.add_reshape(joined, (1, 20, -1)), "output0", (1, 20, 8400))
    return graph.build()


def build_yunet(name: str) -> onnx.ModelProto:
    """Return YuNet's shape: class, object, box and points of strides 8, 16, 32; BGR 0..255."""
    graph = GraphBuilder(name)
    picture = graph.add_input("input", (1, 3, 640, 640))
    cells = [_Cells(graph, picture, stride, 1) for stride in (8, 16, 32)]
    kinds = [
        ("cls", [each.add_score(12.0 / 255, -4.0, bgr=True) for each in cells], 1),
        ("obj", [each.add_score(6.0 / 255, -1.0, bgr=True) for each in cells], 1),
        ("bbox", [_add_yunet_values(each, name, (0.2, 0.3, 1.2, 1.4)) for each in cells], 4),
        ("kps", [_add_yunet_values(each, name, POINTS) for each in cells], 10),
    ]
    for kind, values, width in kinds:
        for each, value in zip(cells, values, strict=True):
            count = (640 // each.stride) ** 2
            value = graph.add_reshape(value, (1, -1, width))  # noqa: PLW2901 - the same, batched
            graph.add_output(value, f"{kind}_{each.stride}", (1, count, width))
    return graph.build()


def _add_yunet_values(cells: _Cells, name: str, base: tuple[float, ...]) -> str:
    return cells.add_values(f"{name}:{len(base)}", base, 1e-3, bgr=True)


_KEPT_NAMES = ("448", "471", "494", "451", "474", "497", "454", "477", "500")
_STRIDE_NAMES = tuple(
    f"{kind}_{stride}" for kind in ("score", "bbox", "kps") for stride in (8, 16, 32)
)

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "scrfd_500m": partial(build_scrfd, "scrfd_500m", batched=True),
    "scrfd_2.5g": partial(build_scrfd, "scrfd_2.5g", names=_STRIDE_NAMES),
    "det_10g": partial(build_scrfd, "det_10g", names=_KEPT_NAMES),
    "retinaface_10g": partial(build_scrfd, "retinaface_10g", side=640, names=_KEPT_NAMES),
    "retinaface_mobile025": partial(build_prior_retinaface, "retinaface_mobile025"),
    "yoloface_8n": partial(build_yoloface, "yoloface_8n"),
    "yunet_2023_mar": partial(build_yunet, "yunet_2023_mar"),
}
