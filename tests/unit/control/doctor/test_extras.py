"""What can be installed besides, and the safety folder, as the doctor tells them."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

from livefuse.config import SafetyConfig
from livefuse.control.doctor.extras import EXTRAS, check_extras
from livefuse.control.doctor.safety import check_safety
from livefuse.safety.mark_keys import MARK_KEY_FILE, load_mark_keys

PYPROJECT = Path(__file__).parents[4] / "pyproject.toml"


def test_the_extras_are_those_of_the_package():
    listed = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    names = {
        extra: tuple(re.split(r"[<>=]", wanted)[0] for wanted in packages)
        for extra, packages in listed.items()
        if extra != "dev"
    }
    assert names == {name: extra.packages for name, extra in EXTRAS.items()}


def test_each_extra_is_told_with_what_it_is_for(monkeypatch):
    there = {"grpcio": "1.85", "c2pa-python": "0.38.1"}

    def find(name):
        if name not in there:
            raise importlib.metadata.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(importlib.metadata, "version", find)
    lines = {check.name: check for check in check_extras()}
    assert {name: line.level for name, line in lines.items()} == {
        "extra grpc": "warning",
        "extra otel": "warning",
        "extra c2pa": "ok",
        "extra virtualcam": "warning",
    }
    assert lines["extra c2pa"].text == "c2pa-python 0.38.1, for signed recordings (mark.c2pa)"
    assert "grpcio-reflection" in lines["extra grpc"].text
    assert "grpcio and" not in lines["extra grpc"].text
    assert lines["extra grpc"].cure == "pip install 'livefuse[grpc]'"
    assert "virtualcam: outputs" in lines["extra virtualcam"].text


def test_the_install_whose_marks_are_used_is_told_and_none_is_made(tmp_path):
    config = SafetyConfig(folder=str(tmp_path / "a" / "safety"))
    folder, keys = check_safety(config)
    assert (folder.level, keys.level) == ("ok", "ok")
    assert "none yet" in keys.text
    assert not (tmp_path / "a").exists()
    made = load_mark_keys(config)
    folder, keys = check_safety(config)
    assert folder.text.endswith("can be written")
    assert f"install {made.install_id}" in keys.text
    (tmp_path / "a" / "safety" / MARK_KEY_FILE).write_text("{}")
    folder, keys = check_safety(config)
    assert (folder.level, keys.level) == ("ok", "problem")
    assert "damaged" in keys.text


def test_a_folder_that_cannot_be_written_is_a_problem_and_an_open_one_a_warning(
    tmp_path, monkeypatch
):
    config = SafetyConfig(folder=str(tmp_path))
    tmp_path.chmod(0o755)
    assert check_safety(config)[0].level == "warning"
    assert "chmod 700" in check_safety(config)[0].cure
    tmp_path.chmod(0o700)
    monkeypatch.setattr("os.access", lambda *_: False)
    folder = check_safety(config)[0]
    assert (folder.level, folder.text) == ("problem", f"{tmp_path} cannot be written")
    (tmp_path / "file").touch()
    monkeypatch.undo()
    beneath = SafetyConfig(folder=str(tmp_path / "file" / "x"))
    assert [check.level for check in check_safety(beneath)] == ["problem", "problem"]


def test_the_folder_of_another_user_is_a_line_with_its_cure(tmp_path, monkeypatch):
    """As root without the capability to look anywhere, in a container."""

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.exists", refuse)
    (check,) = check_safety(SafetyConfig(folder=str(tmp_path)))
    assert (check.level, check.name) == ("problem", "safety folder")
    assert "the user that livefuse runs as" in check.cure
