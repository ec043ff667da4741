"""Stand-ins of swappers, of the identity network and of the converters they need.

A swapper answers in the units it is fed in, so that every number that goes in can be read off
what comes out: each channel of the target times a gain of its own (order, mean and deviation
show), plus what the source says (a number for each channel), plus a dot on each of its template's
five points (the template shows).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from livefuse.config import Config
from livefuse.pipeline.templates import get_template
from livefuse.runtime.registry import load_registry
from tests.standins.graph import GraphBuilder, draw_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

GAINS: Final = (0.9, 0.7, 0.5)
DOT: Final = 0.6
_DOT_SIGMA: Final = 0.02  # of the side
_COARSE: Final = 8  # the dots are stored so many times smaller
_WIDTH: Final = 512
PICTURE_SOURCES: Final = {"blendswap_256": 112, "uniface_256": 256}
CONVERTERS: Final = ("crossface_simswap", "crossface_ghost", "crossface_hififace")


def get_row(name: str) -> Any:
    """Return the manifest's row of a model."""
    return load_registry(Config().models).get_model(name)


def draw_dots(template: str, size: int, *, scale: float = 1.0) -> Any:
    """Return float32 (size, size): DOT x `scale` at the template's points."""
    coarse = max(16, size // _COARSE)
    y, x = np.mgrid[:coarse, :coarse].astype(np.float32)
    dots = np.zeros((coarse, coarse), np.float32)
    for px, py in get_template(template) * coarse:
        dots += np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * (_DOT_SIGMA * coarse) ** 2))
    return np.minimum(dots, 1.0) * np.float32(DOT * scale)


def add_dots(graph: GraphBuilder, value: str, template: str, size: int, scale: float) -> str:
    """Add the template's dots to the last channel of (1, 3, size, size)."""
    dots = draw_dots(template, size, scale=scale)
    planes = np.zeros((1, 3, *dots.shape), np.float32)
    planes[0, 2] = dots
    sizes = graph.add_constant([1, 3, size, size], dtype=np.int64)
    large = graph.add_node("Resize", graph.add_constant(planes), "", "", sizes, mode="linear")
    return graph.add_node("Add", value, large)


def draw_paint(name: str) -> Any:
    """Return (512, 3): what an embedding adds to each channel of the swapper `name`."""
    return draw_weights(f"{name}:paint", (_WIDTH, 3), 0.1)


def draw_kernel(name: str) -> Any:
    """Return (3, 1, side, side): what a source picture adds to each channel."""
    side = PICTURE_SOURCES[name]
    return draw_weights(f"{name}:kernel", (3, 1, side, side), 0.3 / side)


def draw_emap() -> Any:
    """Return inswapper's map (512, 512)."""
    return draw_weights("inswapper:emap", (_WIDTH, _WIDTH), 1 / np.sqrt(_WIDTH))


def build_swapper(name: str) -> onnx.ModelProto:
    """Return the stand-in of a swapper."""
    row = get_row(name)
    graph = GraphBuilder(name)
    target = graph.add_input("target", (1, 3, row.size, row.size))
    gains = np.diag(GAINS).astype(np.float32)[:, :, None, None]
    mixed = graph.add_conv(target, 3, 3, weights=gains)
    if name in PICTURE_SOURCES:
        side = PICTURE_SOURCES[name]
        source = graph.add_input("source", (1, 3, side, side))
        kernel = graph.add_constant(draw_kernel(name))
        paint = graph.add_node("Conv", source, kernel, group=3, kernel_shape=[side, side])
    else:
        source = graph.add_input("source", (1, _WIDTH))
        paint = graph.add_node("MatMul", source, graph.add_constant(draw_paint(name)))
        paint = graph.add_reshape(paint, (1, 3, 1, 1))
    # A converter that does not normalise gives long vectors: keep the paint within the picture.
    value = graph.add_node("Add", mixed, graph.add_scaled(graph.add_node("Tanh", paint), 0.2))
    units = 2.0 if row.mean == (0.5, 0.5, 0.5) else 1.0
    value = add_dots(graph, value, row.template, row.size, units)
    graph.add_output(value, "output", (1, 3, row.size, row.size))
    if row.family == "inswapper":
        graph.add_constant(draw_emap(), "emap")
        return graph.build(last_initialiser="emap")
    return graph.build()


def build_arcface(name: str) -> onnx.ModelProto:
    """Return the stand-in of an identity network: 16 px cells, then 512 numbers."""
    graph = GraphBuilder(name)
    picture = graph.add_input("input.1", (1, 3, 112, 112))
    cells = graph.add_conv(picture, 3, 8, stride=16)
    flat = graph.add_reshape(cells, (1, -1))
    graph.add_output(graph.add_linear(flat, 8 * 49, _WIDTH, scale=0.3), "683", (1, _WIDTH))
    return graph.build()


def build_converter(name: str) -> onnx.ModelProto:
    """Return the stand-in of a converter of identities."""
    graph = GraphBuilder(name)
    embedding = graph.add_input("input", (1, _WIDTH))
    graph.add_output(graph.add_linear(embedding, _WIDTH, _WIDTH), "output", (1, _WIDTH))
    return graph.build()


SWAPPERS: Final = tuple(
    row.name for row in load_registry(Config().models).list_models() if row.task == "swap"
)
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: partial(build_swapper, name) for name in SWAPPERS},
    **{name: partial(build_converter, name) for name in CONVERTERS},
    "w600k_r50": partial(build_arcface, "w600k_r50"),
}
