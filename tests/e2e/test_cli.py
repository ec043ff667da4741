"""The command line from outside: bad input ends in one clear line and an exit code, no more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from livefuse.errors import EXIT_CODES, ConfigError, TokenError

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SECRET = "hunter2hunter2"


def livefuse(*arguments, folder, env=None, timeout_s=30):
    return subprocess.run(
        [sys.executable, "-m", "livefuse", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def expect_one_line(done, code, *words):
    """Check that `done` ended in one line on standard error, with `code` and all `words`."""
    told = done.stdout + done.stderr
    assert done.returncode == code, told
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("livefuse: ")
    assert "Traceback" not in told
    assert SECRET not in told
    for word in words:
        assert word in line, line


def run_badly(folder, *arguments, **options):
    base = {"--from": "test:", "--to": "out.mp4"}
    given = [str(a) for a in arguments]
    for option, value in base.items():
        if option not in given:
            given += [option, value]
    return livefuse("run", *given, "--for", "1", folder=folder, **options)


USAGE = EXIT_CODES[ConfigError]
BAD_LINES = {
    "no command": (["runn"], USAGE, ["runn", "run"]),
    "unknown option": (["run", "--form", "test:"], USAGE, ["--from"]),
    "no input": (["run", "--to", "a.mp4"], USAGE, ["--from"]),
    "unknown choice": (["run", "--from", "test:", "--mode", "fast"], USAGE, ["every_frame"]),
    "not a number": (["run", "--from", "test:", "--for", "soon"], USAGE, ["--for"]),
    "surplus": (["run", "--from", f"rtsp://u:{SECRET}@h/1", "--to", "a", "b"], USAGE, []),
}
BAD_RUNS = {
    "unknown input": (["--from", f"rtps://u:{SECRET}@h/1"], USAGE, ["rtsp"]),
    "unknown output": (["--to", f"rtpm://h/app/{SECRET}"], USAGE, ["rtmp"]),
    "unknown operation": (["--operations", "detect,blurr"], EXIT_CODES[TokenError], ["blur"]),
    "no operation": (["--operations", ""], EXIT_CODES[TokenError], ["none"]),
    "order": (["--operations", "blur,detect"], EXIT_CODES[TokenError], ["detect,blur"]),
    "unknown key": (["--set", "blur.stile=solid"], USAGE, ["style"]),
    "unknown section": (["--set", "blurr.style=solid"], USAGE, ["blur"]),
    "wrong value": (["--set", "blur.strength=2"], USAGE, ["blur.strength"]),
    "no value": (["--set", "blur.strength"], USAGE, ["section.key=value"]),
    "no configuration": (["--config", "nowhere.toml"], USAGE, ["nowhere.toml"]),
    "no variable": (["--to", "env:NOT_SET_AT_ALL"], USAGE, ["NOT_SET_AT_ALL"]),
    "no time": (["--for", "0"], USAGE, ["--for"]),
    "no place for figures": (["--stats", "no/figures.json"], USAGE, ["no/figures.json"]),
    "no address": (["--set", "http.host=192.0.2.1"], USAGE, ["192.0.2.1"]),
    "no file": (["--from", "missing.mp4"], 13, ["missing.mp4"]),
    "no folder": (["--to", "no/folder/out.mp4"], 21, ["no/folder"]),
    "no model folder": (["--set", "models.folder=nowhere"], 4, ["nowhere"]),
    "no such model": (["--set", "detect.model=centreface"], 4, ["centerface"]),
    "no such camera": (["--from", "camera:Nobody"], 13, ["Nobody"]),
    "nobody listens": (["--from", f"rtmp://127.0.0.1:9/app/{SECRET}"], 11, ["127.0.0.1"]),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_wrong_command_line_ends_in_one_line(name, tmp_path):
    arguments, code, words = BAD_LINES[name]
    expect_one_line(livefuse(*arguments, folder=tmp_path), code, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", BAD_RUNS)
def test_bad_input_ends_in_one_line_and_leaves_nothing(name, tmp_path):
    arguments, code, words = BAD_RUNS[name]
    if "--for" in arguments:
        done = livefuse("run", "--from", "test:", "--to", "a.mp4", *arguments, folder=tmp_path)
    else:
        done = run_badly(tmp_path, *arguments)
    expect_one_line(done, code, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_model_is_named(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("manifest.toml", "blazeface_full_192.onnx"):
        (folder / name).symlink_to(ROOT / "models" / name)
    whole = (ROOT / "models" / "centerface.onnx").read_bytes()
    (folder / "centerface.onnx").write_bytes(whole[:1000])
    setting = f"models.folder={folder}"
    expect_one_line(run_badly(tmp_path, "--set", setting), 4, "centerface.onnx", "1000 bytes")
    assert not (tmp_path / "out.mp4").exists()
    done = livefuse("models", "verify", "--set", setting, folder=tmp_path)
    assert done.returncode == 4
    assert "expected" in done.stderr


def test_help_and_version_come_quickly_and_load_no_codec(tmp_path):
    for arguments, word in (
        (["--help"], "run"),
        (["run", "--help"], "--from"),
        (["--version"], "."),
    ):
        done = livefuse(*arguments, folder=tmp_path)
        assert done.returncode == 0
        assert word in done.stdout
    code = (
        "import sys; from livefuse.control.cli import main; main(['--help']);"
        "print(sorted({'av', 'cv2', 'onnxruntime', 'aiohttp', 'numpy'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_looking_commands(tmp_path):
    done = livefuse("models", "list", folder=tmp_path)
    assert done.returncode == 0
    assert "centerface" in done.stdout
    assert livefuse("models", "verify", folder=tmp_path).stdout.count("ok") >= 2
    assert livefuse("cameras", folder=tmp_path).returncode == 0
    assert "natural" in livefuse("looks", "list", folder=tmp_path).stdout
    assert "磨皮" in livefuse("looks", "parameters", folder=tmp_path).stdout
    schema = json.loads(livefuse("token", "schema", folder=tmp_path).stdout)
    assert "blend_ratio" in json.dumps(schema)


def test_the_doctor_tells_ok_warning_and_problem(tmp_path):
    done = livefuse("doctor", folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert {line.split()[0] for line in done.stdout.splitlines()} <= {"ok", "warning"}
    for part in ("python", "av", "encoders", "onnxruntime", "model", "http"):
        assert f" {part} " in done.stdout
    sick = livefuse("doctor", "--set", "models.folder=nowhere", folder=tmp_path)
    assert sick.returncode == 1
    assert "problem" in sick.stdout
