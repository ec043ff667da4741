"""`livefuse models`, as it is typed (C69, C70)."""

import hashlib
import io
import sys

import pytest

from livefuse.config import Config, HttpConfig, ModelsConfig
from livefuse.control.cli import main
from livefuse.control.commands import models
from livefuse.control.doctor.examine import examine
from livefuse.runtime.registry import ModelRegistry
from tests.standins import install_standins, save_standin
from tests.unit.runtime.test_pull import Server


@pytest.fixture
def folder(tmp_path):
    install_standins(tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture
def type_models(folder, capsys):
    """Type `livefuse models ...`; return the exit code, what was said, what was complained of."""

    def run(*words):
        code = main(["models", *words, "--set", f"models.folder={folder}"])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def read_terminal():
    assert isinstance(sys.stderr, io.StringIO)
    return sys.stderr.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_list_tells_what_is_here_and_what_is_restricted(type_models, tmp_path):
    type_models("import", str(save_standin("yoloface_8n", tmp_path)))
    type_models("import", str(save_standin("det_10g", tmp_path)), "--accept-licence")
    code, said, _ = type_models("list")
    rows = {line.split()[1]: line.split() for line in said.splitlines()}
    assert code == 0
    assert rows["centerface"] == ["detect", "centerface", "embedded", "MIT"]
    assert rows["yoloface_8n"] == ["detect", "yoloface_8n", "present", "GPL-3.0"]
    assert rows["det_10g"][2:] == ["present", "non-commercial", "accepted"]
    assert rows["inswapper_128"] == [
        "swap", "inswapper_128", "missing", "non-commercial", "restricted",
    ]  # fmt: skip


def test_import_says_what_the_file_became(type_models, tmp_path):
    path = save_standin("yunet_2023_mar", tmp_path, "download.onnx")
    code, said, complained = type_models("import", str(path))
    assert (code, complained) == (0, "")
    assert said.startswith("download.onnx: yunet_2023_mar (detect), MIT, imported; SHA-256 ")
    assert "not the published" in said


def test_several_files_are_imported_and_named_one_by_one(type_models, tmp_path):
    files = [str(save_standin(name, tmp_path)) for name in ("yunet_2023_mar", "yoloface_8n")]
    code, said, _ = type_models("import", *files)
    assert code == 0
    assert said.count("imported") == 2
    code, _, complained = type_models("import", *files, "--name", "yoloface_8n")
    assert code == 2
    assert "one by one" in complained


def test_a_restricted_model_needs_the_flag_or_a_person(type_models, folder, tmp_path, monkeypatch):
    """(C70)"""
    path = str(save_standin("det_10g", tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # no terminal: nobody is there
    code, _, complained = type_models("import", path)
    assert code == 4
    assert "non-commercial" in complained
    assert "--accept-licence" in complained
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert type_models("import", path)[0] == 4
    assert not ModelRegistry(folder).is_present("det_10g")
    monkeypatch.setattr(sys, "stdin", Terminal("Yes\n"))
    assert type_models("import", path)[0] == 0
    assert "may use the model" in read_terminal()
    assert ModelRegistry(folder).verify_model("det_10g").is_file()


def test_a_person_is_asked_once_for_a_pack(monkeypatch, folder):
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    ask = models._ask(accept_licence=False)
    registry = ModelRegistry(folder)
    assert ask(registry.get_model("det_10g"))
    assert ask(registry.get_model("w600k_r50"))
    assert read_terminal().count("[y/N]") == 1


def test_a_model_put_there_by_hand_is_accepted(type_models, folder):
    save_standin("det_10g", folder)
    code, _, complained = type_models("verify")
    assert code == 4
    assert "models accept det_10g" in complained
    assert type_models("accept", "det_10g")[0] == 4
    save_standin("scrfd_2.5g", folder)
    code, said, _ = type_models("accept", "det_10g", "scrfd_2.5g", "--accept-licence")
    assert code == 0
    assert said.count("accepted by") == 2
    code, said, _ = type_models("verify")
    assert code == 0
    assert "det_10g.onnx" in said


def test_verify_goes_on_behind_a_bad_file(type_models, folder, tmp_path):
    """(C69)"""
    type_models("import", str(save_standin("yoloface_8n", tmp_path)))
    path = folder / "yoloface_8n.onnx"
    path.write_bytes(path.read_bytes()[:-9])
    type_models("import", str(save_standin("yunet_2023_mar", tmp_path)))
    code, said, complained = type_models("verify")
    assert code == 4
    assert "yunet_2023_mar.onnx" in said
    assert "expected" in complained
    assert said.count("ok ") == 7


def test_a_swapper_tells_what_else_it_needs(type_models, tmp_path):
    path = save_standin("simswap_256", tmp_path)
    code, said, _ = type_models("import", str(path), "--accept-licence")
    assert code == 0
    assert "also needs w600k_r50" in said
    assert "also needs crossface_simswap" in said


def test_pull_fetches_and_offline_does_not(type_models, tmp_path):
    """(C69)"""
    server = Server()
    digest = hashlib.sha256(server.data).hexdigest()
    words = ("pull", "yoloface_8n", "--from", server.url, "--sha256", digest)
    try:
        code, _, complained = type_models(*words, "--set", "models.offline=true")
        assert code == 4
        assert "models.offline" in complained
        assert server.seen == []
        code, said, _ = type_models(*words)
        assert code == 0
        assert said == "yoloface_8n.onnx: yoloface_8n (detect), GPL-3.0, imported\n"
    finally:
        server.shutdown()
        server.server_close()


def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with models._show_progress("yoloface_8n") as progress:
        progress(512, 1024)
        progress(1024, 1024)
    assert "yoloface_8n" in read_terminal()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with models._show_progress("yoloface_8n") as progress:
        progress(1024, 1024)
    assert read_terminal() == ""


def test_the_doctor_warns_of_a_brought_file_and_calls_nothing_a_problem(folder):
    save_standin("det_10g", folder)
    config = Config(http=HttpConfig(port=0), models=ModelsConfig(folder=str(folder)))
    checks = [check for check in examine(config, quick=True) if check.name == "model"]
    (warning,) = [check for check in checks if check.level != "ok"]
    assert warning.level == "warning"
    assert "livefuse models accept det_10g" in warning.cure
