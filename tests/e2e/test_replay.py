"""`livefuse replay` from outside: the same report each time, and one clear line when it cannot."""

import json
import shutil
from pathlib import Path

import pytest

from livefuse.errors import EXIT_CODES, ConfigError, IngestNotFoundError
from tests.e2e.test_cli import expect_one_line, livefuse
from tests.streams import read_back

pytestmark = pytest.mark.e2e

DATA = Path(__file__).parents[1] / "replay" / "data"
CHEAP = ("--set", "detect.model=blazeface_full_192", "--set", "encode.preset=ultrafast")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the golden recording `rotation`: 60 frames in two seconds."""
    for name in ("rotation.mkv", "rotation.mkv.jsonl"):
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


def replay(folder, *arguments, **options):
    return livefuse("replay", "rotation.mkv", *CHEAP, *arguments, folder=folder, **options)


def expect_success(done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_two_processes_write_the_same_report(folder):
    """Neither the seed of hashes nor the load of the machine is to be seen in it."""
    for seed in ("1", "2"):
        done = replay(folder, "--report", f"{seed}.json", env={"PYTHONHASHSEED": seed})
        expect_success(done)
        assert "60 frames in 2.0 s: 60 shown, 0 dropped, 0 held" in done.stdout
    report = (folder / "1.json").read_bytes()
    assert report == (folder / "2.json").read_bytes()
    told = json.loads(report)
    assert len(told["frames"]) == 60
    assert told["costs"]["costs_ms"]["detect"] > 0


def test_what_was_measured_here_can_be_replayed_to_the_same_decisions(folder):
    done = replay(folder, "--costs", "measured", "--report", "measured.json", "--quiet")
    expect_success(done)
    assert done.stdout == ""
    expect_success(replay(folder, "--costs", "measured.json", "--report", "again.json"))
    assert (folder / "measured.json").read_bytes() == (folder / "again.json").read_bytes()
    calls_ms = json.loads((folder / "again.json").read_text())["costs"]["calls_ms"]
    assert len(calls_ms["decode"]) == 60


def test_a_file_has_every_frame_at_full_speed_however_slow_the_steps(folder):
    (folder / "costs.json").write_text('{"costs_ms": {"blur": 500}}')
    arguments = ("--speed", "max", "--to", "out.mp4", "--costs", "costs.json")
    expect_success(replay(folder, *arguments))
    assert len(read_back(folder / "out.mp4").pictures) == 60


def test_in_real_time_it_is_a_live_source(folder):
    done = replay(folder, "--real-time", "--to", "out.mp4", "--set", "http.enabled=false")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read_back(folder / "out.mp4").pictures) >= 30


USAGE = EXIT_CODES[ConfigError]
BAD_LINES = {
    "no file": (["gone.mkv"], EXIT_CODES[IngestNotFoundError], ["gone.mkv", "record"]),
    "no side-car": (["alone.mkv"], EXIT_CODES[IngestNotFoundError], ["alone.mkv.jsonl"]),
    "no costs": (["rotation.mkv", "--costs", "none.json"], USAGE, ["none.json"]),
    "wrong costs": (["rotation.mkv", "--costs", "rotation.mkv.jsonl"], USAGE, ["does not hold"]),
    "to a server": (["rotation.mkv", "--to", "rtmp://127.0.0.1/a/b"], USAGE, ["--real-time"]),
    "over itself": (["rotation.mkv", "--report", "rotation.mkv"], USAGE, ["written over"]),
    "report in real time": (
        ["rotation.mkv", "--real-time", "--to", "a.mp4", "--report", "a.json"],
        USAGE,
        ["--report", "virtual"],
    ),
    "report into nowhere": (
        ["rotation.mkv", "--report", "no/such/a.json"],
        USAGE,
        ["no/such/a.json", "--report"],
    ),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_what_cannot_be_replayed_is_told_in_one_line(name, folder):
    arguments, code, words = BAD_LINES[name]
    shutil.copy(folder / "rotation.mkv", folder / "alone.mkv")
    expect_one_line(livefuse("replay", *arguments, folder=folder), code, *words)
