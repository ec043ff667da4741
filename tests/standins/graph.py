"""Builds small ONNX graphs with weights that are the same on every machine.

    graph = GraphBuilder("det_10g")
    picture = graph.add_input("input.1", (1, 3, "h", "w"))
    features = graph.add_conv(picture, 3, 8, stride=8)
    graph.add_output(graph.add_node("Sigmoid", features), "448", ("n", 1))
    model = graph.build()

A value is its name (str); a size may be an int or a name (free).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shape = Sequence[int | str | None]

OPSET = 17
IR_VERSION = 8


def draw_weights(name: str, shape: Sequence[int], scale: float = 1.0) -> np.ndarray[Any, Any]:
    """Return float32 normal values of deviation `scale`, always the same for `name`."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (rng.standard_normal(tuple(shape)) * scale).astype(np.float32)


class GraphBuilder:
    """Collects nodes in order; `build` checks and returns the model."""

    def __init__(self, name: str) -> None:
        """`name` seeds the weights."""
        self.name = name
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initialisers: list[onnx.TensorProto] = []
        self._count = 0

    def add_input(self, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> str:
        """Declare an input and return its name."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def add_output(self, value: str, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> str:
        """Give `value` out as `name`."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"Out_{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def add_constant(self, values: Any, name: str = "", dtype: Any = np.float32) -> str:
        """Store `values` as an initialiser and return its name."""
        name = name or self._create_name("const")
        self._initialisers.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def add_node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one output and return that."""
        output = self._create_name(kind.lower())
        self._nodes.append(
            helper.make_node(kind, list(inputs), [output], name=name or output, **attributes)
        )
        return output

    def add_nodes(self, kind: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs and return those."""
        outputs = [self._create_name(kind.lower()) for _ in range(count)]
        self._nodes.append(
            helper.make_node(kind, list(inputs), outputs, name=outputs[0], **attributes)
        )
        return outputs

    def add_conv(  # noqa: PLR0913 - a convolution has this many sides
        self,
        value: str,
        channels_in: int,
        channels_out: int,
        *,
        stride: int = 1,
        weights: Any = None,
        bias: Any = None,
        scale: float = 0.0,
    ) -> str:
        """Convolve with a kernel of `stride` px (non-overlapping cells); `scale` of the weights.

        Weights are drawn unless given as (channels_out, channels_in, stride, stride).
        """
        fan = channels_in * stride * stride
        shape = (channels_out, channels_in, stride, stride)
        if weights is None:
            seed = f"{self.name}:{self._count}"
            weights = draw_weights(seed, shape, scale or 1.0 / np.sqrt(fan))
        parts = [value, self.add_constant(weights)]
        if bias is not None:
            parts.append(self.add_constant(bias))
        return self.add_node("Conv", *parts, strides=[stride, stride], kernel_shape=[stride] * 2)

    def add_linear(
        self, value: str, count_in: int, count_out: int, *, scale: float = 0.0, bias: Any = None
    ) -> str:
        """Multiply (n, count_in) by a drawn matrix."""
        seed = f"{self.name}:{self._count}"
        matrix = draw_weights(seed, (count_in, count_out), scale or 1.0 / np.sqrt(count_in))
        product = self.add_node("MatMul", value, self.add_constant(matrix))
        return product if bias is None else self.add_node("Add", product, self.add_constant(bias))

    def add_reshape(self, value: str, shape: Sequence[int]) -> str:
        """Reshape; 0 keeps a size, -1 takes what is left."""
        return self.add_node("Reshape", value, self.add_constant(shape, dtype=np.int64))

    def add_transpose(self, value: str, order: Sequence[int]) -> str:
        """Reorder the axes."""
        return self.add_node("Transpose", value, perm=list(order))

    def add_scaled(self, value: str, factor: Any, offset: Any = 0.0) -> str:
        """Return value * factor + offset."""
        product = self.add_node("Mul", value, self.add_constant(factor))
        return self.add_node("Add", product, self.add_constant(offset))

    def build(self, *, last_initialiser: str = "") -> onnx.ModelProto:
        """Return the checked model; `last_initialiser` is moved to the end (inswapper's emap)."""
        initialisers = sorted(self._initialisers, key=lambda item: item.name == last_initialiser)
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, initialisers)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="livefuse stand-in",
        )
        onnx.checker.check_model(model)
        return model

    def _create_name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"
