"""`livefuse record`: what it refuses before anything is opened, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import uvloop

from livefuse.config import IngestConfig
from livefuse.control.background import catch_signals
from livefuse.control.cli import main
from livefuse.control.commands.record import check_record
from livefuse.errors import ConfigError, JobError
from livefuse.ingest.playback import open_recording
from livefuse.ingest.reader import Item
from tests.clips import write_clip
from tests.replay.make import DATA

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("url", "name", "for_s", "words"),
    [
        ("demo:", "a.mkv", None, "draws its pictures here"),
        ("test:", "a.mkv", None, "draws its pictures here"),
        ("whip:", "a.mkv", None, "where a server runs"),
        ("rtsp://h/p", "a.mp4", None, "write a.mkv"),
        ("rtsp://h/p", "a.mkv", 0, "no length of time"),
        ("rtsp://h/p", "a.mkv", float("nan"), "no length of time"),
        ("nonsense://h/p", "a.mkv", None, "unknown input"),
        ("a.mkv", "./a.mkv", None, "while it is read"),
        ("replay:a.mkv", "a.mkv", None, "while it is read"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_words(url, name, for_s, words):
    with pytest.raises(ConfigError, match=words):
        check_record(url, Path(name), for_s)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("record") / "clip.mp4", frames=45, audio="aac")


def record(*arguments, folder):
    command = [sys.executable, "-m", "livefuse", "record", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=folder, env=env, text=True, **pipes)  # type: ignore[call-overload] # all are pipes


def count_pictures(path):
    return sum(
        isinstance(entry, Item) and entry.is_video
        for entry in open_recording(path, IngestConfig()).read()
    )


def test_a_file_is_recorded_at_its_own_pace_and_never_over_another(clip, tmp_path):
    process = record("--from", clip, "a.mkv", folder=tmp_path)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "packets" in out
    assert "--from replay:a.mkv" in out
    assert count_pictures(tmp_path / "a.mkv") == 45
    assert open_recording(tmp_path / "a.mkv", IngestConfig()).duration_ns > 1_300_000_000
    again = record("--from", clip, "a.mkv", folder=tmp_path)
    _, errors = again.communicate(timeout=30)
    assert again.returncode == 21
    assert "is there already" in errors
    shorter = record(
        "--from", clip, "a.mkv", "--for", 0.5, "--quiet", "--set", "record.overwrite=true",
        folder=tmp_path,
    )  # fmt: skip
    out, errors = shorter.communicate(timeout=30)
    assert (shorter.returncode, out, errors) == (0, "", "")
    assert 10 <= count_pictures(tmp_path / "a.mkv") < 45


def test_ctrl_c_closes_it_well(tmp_path):
    process = record("--from", f"replay:{DATA / 'overload.mkv'}", "a.mkv", folder=tmp_path)
    deadline = time.monotonic() + 20
    path = tmp_path / "a.mkv"
    while time.monotonic() < deadline and not (path.exists() and path.stat().st_size > 9000):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 0
    assert open_recording(path, IngestConfig()).describe()["closed_well"]
    assert 5 < count_pictures(path) < 360


def test_a_source_that_is_not_there_leaves_no_file(tmp_path, capsys):
    assert main(["record", "--from", str(tmp_path / "none.mp4"), str(tmp_path / "a.mkv")]) == 13
    assert "none.mp4" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sigusr1_calls_and_ends_nothing():
    calls = []

    async def run():
        asked = asyncio.Event()

        def note():
            calls.append("asked")
            asked.set()

        with catch_signals(note) as stop:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGUSR1)
                await asyncio.wait_for(asked.wait(), 5)
                asked.clear()
            assert not stop.done()

    uvloop.run(run())
    assert calls == ["asked", "asked"]


def test_a_job_that_keeps_nothing_says_so(tmp_path):
    from livefuse.clock import SystemClock
    from livefuse.config import Config
    from livefuse.job.spec import JobSpec
    from livefuse.workers.local import Worker

    spec = JobSpec("test:", (str(tmp_path / "a.mkv"),), ())
    job = Worker(Config(), SystemClock()).add_job("main", spec)
    with pytest.raises(JobError, match=r"set replay\.keep_s"):
        job.write_recording()
