"""Stand-ins of identity networks: a linear function of the picture's 49 mean colours.

As fed: a wrong order of channels, a wrong scale or a shifted crop gives other vectors.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.standins.graph import GraphBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

SIZE = 112
LENGTH = 512


def build_arcface(
    name: str, output: str, *, batch: int | str = "None", is_raw: bool = False
) -> onnx.ModelProto:
    """Return a network (batch, 3, 112, 112) -> (batch, 512).

    `is_raw`: it begins with its own Sub and Mul, as exports from MXNet do, and wants 0..255.
    """
    graph = GraphBuilder(name)
    value = graph.add_input("input.1" if not is_raw else "data", (batch, 3, SIZE, SIZE))
    if is_raw:
        value = graph.add_node("Sub", value, graph.add_constant(127.5), name="_minusscalar0")
        value = graph.add_node("Mul", value, graph.add_constant(1 / 128), name="_mulscalar0")
    value = graph.add_node("AveragePool", value, kernel_shape=[16, 16], strides=[16, 16])
    value = graph.add_reshape(value, (-1, 3 * 49))
    value = graph.add_linear(value, 3 * 49, LENGTH)
    graph.add_output(value, output, (batch, LENGTH))
    return graph.build()


# w600k_r50's is beside the swappers that need it.
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "w600k_mbf": partial(build_arcface, "w600k_mbf", "516"),
    "glintr100": partial(build_arcface, "glintr100", "1333", is_raw=True),
}
