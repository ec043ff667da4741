"""The doctor's lines: a missing extra is a warning, a broken part a problem, never an exception."""

import importlib.metadata
import sys

import msgspec

from livefuse.config import Config, HttpConfig, ModelsConfig
from livefuse.control.api.server import bind_listener
from livefuse.control.doctor.examine import Check, examine, format_check

ANY_PORT = Config(http=HttpConfig(port=0))


def find(checks, name):
    return [check for check in checks if check.name == name]


def test_a_whole_machine_has_no_problem():
    checks = examine(ANY_PORT, quick=True)
    assert [check for check in checks if check.level == "problem"] == []
    assert all(check.cure for check in checks if check.level == "warning")
    models = {check.text.split(",")[0] for check in find(checks, "model")}
    assert {"centerface", "blazeface_full_192", "facemesh_468", "dlib_resnet_128"} <= models


def test_a_missing_model_folder_is_a_problem(tmp_path):
    config = msgspec.structs.replace(ANY_PORT, models=ModelsConfig(folder=str(tmp_path)))
    (check,) = find(examine(config, quick=True), "models")
    assert check.level == "problem"
    assert "models.folder" in check.cure


def test_a_damaged_model_is_a_problem(tmp_path):
    from livefuse.runtime.registry import find_models_folder

    folder = find_models_folder(ModelsConfig())
    (tmp_path / "manifest.toml").write_bytes((folder / "manifest.toml").read_bytes())
    (tmp_path / "centerface.onnx").write_bytes(b"half")
    config = msgspec.structs.replace(ANY_PORT, models=ModelsConfig(folder=str(tmp_path)))
    checks = find(examine(config, quick=True), "model")
    assert {check.level for check in checks} == {"problem"}
    assert "4 bytes" in checks[0].text


def test_packages_that_overwrite_one_another_are_a_problem(monkeypatch):
    version = importlib.metadata.version
    both = {"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"}
    monkeypatch.setattr(importlib.metadata, "version", lambda name: both.get(name) or version(name))
    (check,) = find(examine(ANY_PORT, quick=True), "packages")
    assert check.level == "problem"
    assert "pip uninstall onnxruntime onnxruntime-gpu" in check.cure


def test_a_library_that_does_not_load_is_a_line(monkeypatch):
    monkeypatch.delitem(sys.modules, "livefuse.control.doctor.runtime", raising=False)
    monkeypatch.setitem(sys.modules, "livefuse.runtime.providers", None)
    (check,) = find(examine(ANY_PORT, quick=True), "runtime")
    assert check.level == "problem"
    assert "\n" not in check.text


def test_a_taken_port_is_a_warning():
    with bind_listener("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        (check,) = find(examine(Config(http=HttpConfig(port=port)), quick=True), "http")
    assert check.level == "warning"
    assert str(port) in check.text


def test_only_a_checkout_is_told_what_its_tests_want(tmp_path, monkeypatch):
    names = {"ffmpeg", "gstreamer", "nginx-rtmp"}
    assert names <= {check.name for check in examine(ANY_PORT, quick=True)}
    monkeypatch.setattr(
        "livefuse.control.doctor.examine._TESTS", tmp_path / "site-packages" / "tests"
    )
    told = {check.name for check in examine(ANY_PORT, quick=True)}
    assert not names & told
    assert "srt" in told


def test_a_line_has_level_name_text_and_cure():
    line = format_check(Check("warning", "srt", "not installed", "apt-get install srt-tools"))
    assert line == "warning  srt              not installed: apt-get install srt-tools"
