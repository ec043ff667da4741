"""A graph's last initialiser and first operators, as the onnx package has them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from livefuse.config import Config
from livefuse.errors import ModelError
from livefuse.runtime.graph import list_first_operators, read_last_initialiser
from livefuse.runtime.registry import load_registry


def save_model(path, last, **options):
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    first = numpy_helper.from_array(np.ones(1, np.float32), "first")
    nodes = [
        helper.make_node("Sub", ["x", "first"], ["a"]),
        helper.make_node("Mul", ["a", "first"], ["y"]),
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph(nodes, "small", [value], [result], [first, last])
    onnx.save(helper.make_model(graph), path, **options)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_the_last_initialiser_is_read_as_onnx_reads_it(tmp_path, dtype):
    values = np.random.default_rng(3).normal(size=(7, 300)).astype(dtype)
    path = save_model(tmp_path / "m.onnx", numpy_helper.from_array(values, "emap"))
    found = read_last_initialiser(path)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values.astype(np.float32))


def test_numbers_that_are_not_raw_are_read_too(tmp_path):
    values = [0.5, -1.25, 3.0, 4.0, 5.0, 6.0]
    tensor = helper.make_tensor("emap", TensorProto.FLOAT, [2, 3], values)
    assert not tensor.HasField("raw_data")
    found = read_last_initialiser(save_model(tmp_path / "m.onnx", tensor))
    np.testing.assert_array_equal(found, np.array(values, np.float32).reshape(2, 3))


def test_the_first_operators_are_read_in_their_order(tmp_path):
    tensor = numpy_helper.from_array(np.ones(1, np.float32), "last")
    path = save_model(tmp_path / "m.onnx", tensor)
    assert list_first_operators(path, 8) == ("Sub", "Mul")
    assert list_first_operators(path, 1) == ("Sub",)


def test_embedded_files_are_read_as_onnx_reads_them():
    registry = load_registry(Config().models)
    for name in ("facemesh_468", "selfie_seg_256", "centerface"):
        path = registry.find_path(name)
        assert path is not None
        graph = onnx.load(path).graph
        operators = tuple(node.op_type for node in graph.node[:8])
        assert list_first_operators(path, 8) == operators


@pytest.mark.parametrize(
    "content", [b"", b"not a model at all", b"\x3a\xff\xff\xff\x7f", bytes(99)]
)
def test_what_is_no_graph_is_refused_in_words(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.onnx"):
        read_last_initialiser(path)
    with pytest.raises(ModelError, match=r"broken\.onnx"):
        list_first_operators(path, 3)


def test_a_truncated_file_is_refused_in_words(tmp_path):
    tensor = numpy_helper.from_array(np.ones((40, 40), np.float32), "last")
    path = save_model(tmp_path / "cut.onnx", tensor)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ModelError, match=r"cut\.onnx"):
        read_last_initialiser(path)


def test_whole_numbers_are_refused_in_words(tmp_path):
    tensor = numpy_helper.from_array(np.ones(4, np.int64), "last")
    with pytest.raises(ModelError, match=r"m\.onnx"):
        read_last_initialiser(save_model(tmp_path / "m.onnx", tensor))


def test_a_missing_file_is_refused_in_words(tmp_path):
    with pytest.raises(ModelError, match=r"absent\.onnx"):
        read_last_initialiser(tmp_path / "absent.onnx")
