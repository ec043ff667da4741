"""What the doctor says of the device: none, one without its libraries, one that was asked for."""

import msgspec
import pytest

from livefuse.config import Config, ModelsConfig
from livefuse.control.doctor import runtime as doctor_runtime
from livefuse.control.doctor.runtime import check_libraries, check_runtime
from livefuse.runtime import providers
from livefuse.runtime.libraries import Library


@pytest.fixture
def without_nvidia(monkeypatch):
    monkeypatch.setattr(providers, "has_nvidia_device", lambda: False)


def with_provider(wish):
    return msgspec.structs.replace(Config(), models=ModelsConfig(providers=wish))


def test_a_machine_without_a_card_is_well(without_nvidia):
    checks = check_runtime(Config())
    assert [check.level for check in checks] == ["ok", "ok"]
    assert "processor" in checks[1].text


@pytest.mark.parametrize("wish", ["cuda", "tensorrt"])
def test_a_device_that_is_configured_and_not_there_is_a_problem(without_nvidia, wish):
    """(C19) cause and cure."""
    (check,) = [c for c in check_runtime(with_provider(wish)) if c.level == "problem"]
    assert f"{wish} was asked for, but this machine shows no NVIDIA device" in check.text
    assert "models.providers" in check.cure


def test_missing_libraries_are_told_with_what_is_there_instead(monkeypatch):
    """(C20)"""
    found = [
        Library("libcudart.so.13", "/lib/libcudart.so.13.0.48"),
        Library("libcublas.so.13", "", ("libcublas.so.12",)),
        Library("libcudnn.so.9", ""),
    ]
    monkeypatch.setattr(doctor_runtime, "examine_libraries", lambda names: found)
    (check,) = check_libraries("13.0")
    assert check.level == "warning"
    assert "wanted libcublas.so.13, found libcublas.so.12" in check.text
    assert "wanted libcudnn.so.9, found none" in check.text
    assert "onnxruntime-gpu[cuda,cudnn]" in check.cure
    assert "tensorrt" not in check.cure
    (check,) = check_libraries("13.0", ("libnvinfer.so.10",))
    assert "tensorrt-cu13" in check.cure


def test_libraries_that_are_there_are_told_with_their_versions(monkeypatch):
    found = [Library("libcudart.so.13", "/lib/libcudart.so.13.0.48")]
    monkeypatch.setattr(doctor_runtime, "examine_libraries", lambda names: found)
    (check,) = check_libraries("13.0")
    assert check.level == "ok"
    assert check.text == "built for 13.0, found libcudart.so.13 13.0.48"


def test_a_card_is_told_with_driver_and_folder(monkeypatch):
    monkeypatch.setattr(doctor_runtime, "read_card_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(doctor_runtime, "read_driver_version", lambda: "580.65")
    monkeypatch.setattr(doctor_runtime, "examine_libraries", lambda names: [])
    report = msgspec.structs.replace(
        providers.describe_runtime(), has_nvidia_device=True, usable_providers=("cpu",)
    )
    monkeypatch.setattr(doctor_runtime, "describe_runtime", lambda: report)
    texts = [check.text for check in check_runtime(Config())]
    assert any("NVIDIA H200, driver 580.65" in text for text in texts)
