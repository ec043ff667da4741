"""Smaller copies of a model: made once, used by name of their source, given up for full ones."""

import sys

import numpy as np
import pytest

from livefuse.config import ModelsConfig
from livefuse.errors import ModelError
from livefuse.runtime.precision import compute_psnr, get_reduced_path, reduce_model
from tests.unit.runtime.graphs import create_sessions, make_picture, write_conv, write_manifest

MIN_PSNR_DB = 30.0


@pytest.fixture
def folder(tmp_path):
    write_conv(tmp_path / "free.onnx")
    write_manifest(tmp_path, {"free": "enhance"})
    return tmp_path


def reduce_here(folder, precision):
    config = ModelsConfig(folder=str(folder), cache_folder=str(folder / "cache"))
    source = folder / "free.onnx"
    target = get_reduced_path(config, source, precision)
    samples = [{"x": make_picture(seed)} for seed in range(8)] if precision == "int8" else []
    reduce_model(source, target, precision, samples)
    return target


def test_int8_is_used_once_it_was_made_and_is_near_enough(folder):
    """(R39) more than 30 dB against full precision."""
    full = create_sessions(folder).get("free")
    before = create_sessions(folder, precision="int8")
    assert before.get("free").precision == "fp32"
    assert "livefuse models reduce free" in before.statistics().notes[0]
    target = reduce_here(folder, "int8")
    after = create_sessions(folder, precision="int8")
    reduced = after.get("free")
    assert reduced.precision == "int8"
    assert after.statistics().notes == ()
    assert after.get("free") is reduced
    feeds = {"x": make_picture(99)}
    psnr_db = compute_psnr(full.run(feeds)[0], reduced.run(feeds)[0])
    assert MIN_PSNR_DB < psnr_db < 90.0
    assert list(target.parent.iterdir()) == [target]


def test_fp16_keeps_its_ends_and_is_near(folder):
    target = reduce_here(folder, "fp16")
    folder_of_halves = folder / "halves"
    folder_of_halves.mkdir()
    target.rename(folder_of_halves / "free.onnx")
    write_manifest(folder_of_halves, {"free": "enhance"})
    full, halves = (create_sessions(at).get("free") for at in (folder, folder_of_halves))
    assert halves.input_types == (np.float32,)
    feeds = {"x": make_picture(99)}
    assert compute_psnr(full.run(feeds)[0], halves.run(feeds)[0]) > 55.0


def test_a_processor_says_that_halves_gain_nothing(folder):
    sessions = create_sessions(folder, precision="fp16")
    assert sessions.get("free").precision == "fp32"
    assert sessions.statistics().notes == (
        "a processor gains nothing from fp16, networks run in fp32",
    )


def test_a_copy_belongs_to_one_file(folder):
    config = ModelsConfig(cache_folder=str(folder / "cache"))
    before = get_reduced_path(config, folder / "free.onnx", "int8")
    write_conv(folder / "free.onnx", seed=5)
    assert get_reduced_path(config, folder / "free.onnx", "int8") != before
    assert before.name.endswith(".int8.onnx")


def test_int8_needs_samples(folder, tmp_path):
    with pytest.raises(ModelError, match="needs samples"):
        reduce_model(folder / "free.onnx", tmp_path / "out.onnx", "int8")
    assert not (tmp_path / "out.onnx").exists()


def test_without_the_tools_it_says_what_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "onnxruntime.transformers.float16", raising=False)
    with pytest.raises(ModelError, match="needs the package") as caught:
        reduce_model(folder / "free.onnx", tmp_path / "out.onnx", "fp16")
    assert "pip install onnx" in caught.value.hint


def test_a_file_that_is_no_network_is_an_error_in_words(folder, tmp_path):
    (folder / "bad.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match=r"bad\.onnx cannot be written in fp16"):
        reduce_model(folder / "bad.onnx", tmp_path / "out.onnx", "fp16")


def test_psnr_is_the_textbooks():
    reference = np.array([0.0, 1.0, 0.5, 0.25])
    assert compute_psnr(reference, reference) == float("inf")
    assert compute_psnr(reference, reference + 0.1) == pytest.approx(20.0)
