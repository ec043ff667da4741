"""Stand-ins of an occluder and a parser: what is blue is not the face."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from livefuse.config import Config
from livefuse.runtime.registry import load_registry
from tests.standins.graph import GraphBuilder
from tests.standins.swappers import get_row

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

_STEEP: Final = 40.0
_LEVEL: Final = 0.3  # B - (R + G) / 2 from which a px is blue
_HAIR, _SKIN, _CLASSES = 17, 1, 19


def build_xseg(name: str) -> onnx.ModelProto:
    """Return the stand-in of an occluder: 1 where the face is bare. Rows of B, G, R."""
    graph = GraphBuilder(name)
    picture = graph.add_input("in_face:0", (1, 256, 256, 3))
    weights = graph.add_constant(np.array([[1.0], [-0.5], [-0.5]], np.float32) * -_STEEP)
    logit = graph.add_node("MatMul", picture, weights)
    logit = graph.add_node("Add", logit, graph.add_constant(_STEEP * _LEVEL))
    graph.add_output(graph.add_node("Sigmoid", logit), "out_mask:0", (1, 256, 256, 1))
    return graph.build()


def build_bisenet(name: str) -> onnx.ModelProto:
    """Return the stand-in of a parser: hair where it is blue, skin elsewhere. ImageNet's units."""
    row = get_row(name)
    graph = GraphBuilder(name)
    picture = graph.add_input("input", (1, 3, 512, 512))
    blueness = np.array([-0.5, -0.5, 1.0], np.float32)
    weights = np.zeros((_CLASSES, 3, 1, 1), np.float32)
    weights[_HAIR, :, 0, 0] = blueness * np.array(row.std, np.float32)
    bias = np.full(_CLASSES, -9.0, np.float32)
    bias[_SKIN] = _LEVEL
    bias[_HAIR] = float(blueness @ np.array(row.mean, np.float32))
    value = graph.add_conv(picture, 3, _CLASSES, weights=weights, bias=bias)
    graph.add_output(value, "output", (1, _CLASSES, 512, 512))
    return graph.build()


def _list_masks(family: str) -> list[str]:
    rows = load_registry(Config().models).list_models()
    return [row.name for row in rows if row.family == family]


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: partial(build_xseg, name) for name in _list_masks("xseg")},
    **{name: partial(build_bisenet, name) for name in _list_masks("bisenet")},
}
