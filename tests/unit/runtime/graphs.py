"""Small networks for tests of the runtime, and a models folder that holds them."""

import hashlib

import numpy as np
import onnx
from onnx import TensorProto, helper

from livefuse.config import ModelsConfig
from livefuse.runtime.session import SessionCache

ROW = """
[[models]]
name = "{name}"
file = "{name}.onnx"
sha256 = "{sha256}"
bytes = {bytes}
licence = "MIT"
family = "{family}"
task = "{task}"
source = "made by a test"
embedded = true
"""


def write_graph(path, nodes, *, inputs, outputs, weights=()):
    """Write a graph; `inputs` and `outputs` are name -> shape, `weights` name -> array."""
    sources, results = (
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in side.items()]
        for side in (inputs, outputs)
    )
    initializers = [onnx.numpy_helper.from_array(v, k) for k, v in dict(weights).items()]
    graph = helper.make_graph(nodes, "small", sources, results, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def write_conv(path, batch="N", seed=0, channels=3):
    """Write y = relu(conv(x)) with `batch` rows of 3x16x16."""
    weight = np.random.default_rng(seed).normal(0, 0.2, (channels, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Tanh", ["c"], ["y"]),
    ]
    shape = [batch, 3, 16, 16]
    write_graph(
        path, nodes, inputs={"x": shape}, outputs={"y": [batch, channels, 16, 16]},
        weights={"w": weight},
    )  # fmt: skip


def write_divider(path):
    """Write y = x / x, so that a 0 makes NaN and all else is 1."""
    shape = ["N", 1, 16, 16]
    node = helper.make_node("Div", ["x", "x"], ["y"])
    write_graph(path, [node], inputs={"x": shape}, outputs={"y": shape})


def write_manifest(folder, tasks):
    """Write the manifest of the graphs in `folder`; `tasks` is name -> task."""
    rows = []
    for name, task in tasks.items():
        data = (folder / f"{name}.onnx").read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        rows.append(
            ROW.format(name=name, sha256=digest, bytes=len(data), family="small", task=task)
        )
    (folder / "manifest.toml").write_text("".join(rows))


def create_sessions(folder, **settings):
    """Return sessions for the models in `folder`, their cache inside it."""
    settings.setdefault("cache_folder", str(folder / "cache"))
    settings.setdefault("providers", "cpu")
    return SessionCache(ModelsConfig(folder=str(folder), **settings))


def make_picture(seed, rows=1, channels=3):
    """Return float32 (rows, channels, 16, 16) without a zero."""
    values = np.random.default_rng(seed).uniform(0.1, 1.0, (rows, channels, 16, 16))
    return values.astype(np.float32)
