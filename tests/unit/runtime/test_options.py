"""What a GPU would be told, read from dicts: no GPU needed."""

import mmap
from pathlib import Path

import pytest

from livefuse.config import ModelsConfig
from livefuse.runtime.options import (
    Plan,
    build_provider_options,
    choose_precision,
    find_cache_folder,
    find_engine_folder,
    read_card_name,
    read_driver_version,
)

INFORMATION = """Model: \t\t NVIDIA H200
IRQ:   \t\t 150
GPU UUID: \t GPU-00000000
"""
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 2025\n"


def build(provider, precision="fp32", folder="/engines", **settings):
    plan = Plan(provider, 1, precision)
    return build_provider_options(plan, ModelsConfig(**settings), Path(folder))


def test_a_processor_is_told_nothing():
    assert build("cpu") == [("CPUExecutionProvider", {})]


def test_cuda_has_its_memory_capped_and_does_not_search_in_mid_stream():
    (name, options), (last, _) = build("cuda", gpu_memory_mb=2048, device=1)
    assert (name, last) == ("CUDAExecutionProvider", "CPUExecutionProvider")
    assert options["gpu_mem_limit"] == str(2 << 30)
    assert options["device_id"] == "1"
    assert options["arena_extend_strategy"] == "kSameAsRequested"
    assert options["cudnn_conv_algo_search"] == "HEURISTIC"


def test_memory_is_4_gb_by_default_and_without_a_limit_at_0():
    assert build("cuda")[0][1]["gpu_mem_limit"] == str(4 << 30)
    assert "gpu_mem_limit" not in build("cuda", gpu_memory_mb=0)[0][1]


@pytest.mark.parametrize(
    ("precision", "halves", "whole"), [("fp32", "0", "0"), ("fp16", "1", "0"), ("int8", "1", "1")]
)
def test_tensorrt_builds_for_the_precision_and_keeps_its_engines(precision, halves, whole):
    providers = build("tensorrt", precision, folder="/kept/engines")
    assert [name for name, _ in providers] == [
        "TensorrtExecutionProvider",
        "CUDAExecutionProvider",
        "CPUExecutionProvider",
    ]
    options = providers[0][1]
    assert (options["trt_fp16_enable"], options["trt_int8_enable"]) == (halves, whole)
    assert options["trt_engine_cache_enable"] == options["trt_timing_cache_enable"] == "1"
    assert options["trt_engine_cache_path"] == options["trt_timing_cache_path"] == "/kept/engines"
    assert all(isinstance(value, str) for _, pairs in providers for value in pairs.values())


@pytest.mark.parametrize(
    ("provider", "precision", "library"),
    [("cuda", "fp32", "cuda"), ("tensorrt", "int8", "tensorrt")],
)
def test_every_option_is_one_that_the_installed_onnxruntime_knows(provider, precision, library):
    """A word it does not know is refused, but only where there is a card."""
    import onnxruntime

    name = f"libonnxruntime_providers_{library}.so"
    path = Path(onnxruntime.__file__).parent / "capi" / name
    if not path.is_file():
        pytest.skip(f"{name} is not part of this onnxruntime")
    options = build(provider, precision)[0][1]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        unknown = [key for key in options if data.find(key.encode() + b"\0") < 0]
    assert unknown == []


def test_auto_is_halves_on_tensorrt_alone():
    assert [choose_precision("auto", p) for p in ("cpu", "cuda", "tensorrt")] == [
        "fp32",
        "fp32",
        "fp16",
    ]
    assert choose_precision("int8", "cpu") == "int8"
    assert choose_precision("fp16", "cuda") == "fp16"
    assert choose_precision("fp32", "tensorrt") == "fp32"


def test_engines_are_kept_per_card_driver_and_version(tmp_path, monkeypatch):
    from livefuse.runtime import options

    config = ModelsConfig(cache_folder=str(tmp_path))
    monkeypatch.setattr(options, "read_card_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(options, "read_driver_version", lambda: "580.65.06")
    folder = find_engine_folder(config, "1.31.1")
    assert folder == tmp_path / "engines" / "nvidia-h200-580.65.06-1.31.1"
    monkeypatch.setattr(options, "read_card_name", lambda device: "NVIDIA L4")
    assert find_engine_folder(config, "1.31.1") != folder
    assert find_engine_folder(config, "1.32.0") != find_engine_folder(config, "1.31.1")
    assert not folder.exists()


def test_card_and_driver_are_read_from_what_the_driver_shows(tmp_path):
    for number, text in enumerate([INFORMATION, INFORMATION.replace("H200", "L4")]):
        (tmp_path / f"0000:{number}0:00.0").mkdir()
        (tmp_path / f"0000:{number}0:00.0" / "information").write_text(text)
    assert read_card_name(0, tmp_path) == "NVIDIA H200"
    assert read_card_name(1, tmp_path) == "NVIDIA L4"
    assert read_card_name(2, tmp_path) == ""
    assert read_card_name(0, tmp_path / "none") == ""
    (tmp_path / "version").write_text(VERSION)
    assert read_driver_version(tmp_path / "version") == "580.65.06"
    assert read_driver_version(tmp_path / "none") == ""


def test_the_cache_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_cache_folder(ModelsConfig()) == tmp_path / "livefuse"
    named = find_cache_folder(ModelsConfig(cache_folder="~/here"))
    assert named.is_absolute()
    assert named.name == "here"
