"""`livefuse run` as a person meets it: watched, stopped, measured, on a pipe and on a terminal."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SECRET = "hunter2hunter2"
ENV = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}
# Small pictures: these tests are about what stands around the frames.
SMALL = ("--set", "ingest.canvas=320x180", "--set", "http.port=0")


def start(*arguments, folder, **options):
    command = [sys.executable, "-m", "livefuse", "run", *arguments]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, **{"env": ENV, **pipes, **options})


@contextlib.contextmanager
def running(*arguments, folder):
    """A run that can be watched: yields the process and the page's address, key and all."""
    with start(*arguments, folder=folder) as process:
        try:
            while not (found := re.search(r"http://\S+", process.stdout.readline())):
                assert process.poll() is None, process.stderr.read()
            yield process, found[0]
        finally:
            process.kill()


def at(page, path):
    """The address of `path` on the server of `page`, with its key."""
    return page.replace("/?key=", f"{path}?key=")


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def wait_live(page, frames=10):
    stats = {}
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        stats = json.loads(fetch(at(page, "/v1/jobs/main/status")))
        if stats["frames_out"] >= frames:
            return stats
        time.sleep(0.1)
    pytest.fail(f"no frames: {stats}")


def test_for_a_time_with_figures(tmp_path):
    """(C07) rate and delay apart, p50 and p95 of each step, the bottleneck by name."""
    arguments = ("--from", "test:", "--to", "out.mp4", "--for", "2", "--stats", "s.json", *SMALL)
    with start(*arguments, folder=tmp_path) as process:
        out, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    stats = json.loads((tmp_path / "s.json").read_text())
    assert stats["frames_in"] >= stats["frames_out"] > 10
    assert {"p50_ms", "p95_ms", "p99_ms", "count"} == set(stats["latency"])
    assert {"detect", "blur", "encode"} <= set(stats["steps"])
    assert all({"p50_ms", "p95_ms"} <= set(step) for step in stats["steps"].values())
    assert stats["bottleneck"] in set(stats["steps"]) - {"queue"}
    assert stats["fps_out"] > 1
    assert stats["load"]["rung_seconds"][stats["rung"]] > 0
    assert stats["outputs"][0]["connected"] is True
    assert stats["outputs"][0]["kind"] == "file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mp4", "s.json"]
    assert (tmp_path / "out.mp4").stat().st_size > 1000
    assert "/v1/jobs/main/live.flv?key=" in out
    assert "frames in" in out.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number, tmp_path):
    arguments = ("--from", "test:", "--to", "out.mp4", "--stats", "s.json", *SMALL)
    with running(*arguments, folder=tmp_path) as (process, page):
        wait_live(page)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "stopped" in out.splitlines()[-1]
    assert json.loads((tmp_path / "s.json").read_text())["state"] == "stopped"


def test_waiting_for_a_push_is_said_and_can_be_stopped(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    source = f"listen:rtmp://127.0.0.1:{port}/live/{SECRET}"
    with start("--from", source, "--to", "o.mp4", *SMALL, folder=tmp_path) as process:
        told = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert told.startswith(f"waiting for listen:rtmp://127.0.0.1:{port}/live/***")
    assert process.returncode == 0, err
    assert SECRET not in told + out + err
    assert list(tmp_path.iterdir()) == []


def test_the_stream_can_be_watched_and_asked(tmp_path):
    with running("--from", "test:", *SMALL, folder=tmp_path) as (process, page):
        wait_live(page)
        for kind, magic in (("flv", b"FLV"), ("ts", b"\x47")):
            with urllib.request.urlopen(at(page, f"/v1/jobs/main/live.{kind}"), timeout=10) as live:
                assert live.read(20_000).startswith(magic)
        assert b'livefuse_frames_total{job_id="main",side="out"}' in fetch(at(page, "/metrics"))
        assert fetch(at(page, "/readyz")) == b"ready\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_the_line_to_paste_is_the_one_that_plays(tmp_path):
    """C58: what is printed at the start is a stream, and the status says what is connected."""
    arguments = ("--from", "test:", "--to", "o.flv", *SMALL)
    with start(*arguments, folder=tmp_path) as process:
        try:
            said = ""
            while not (found := re.search(r"watch: ffplay .*'(http://\S+)'", said)):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                said += line
            assert re.search(rf"watch: {re.escape(found[1])} .*OBS", said), said
            assert re.search(r"watch: ffplay \S*o\.flv", said), said
            with urllib.request.urlopen(found[1], timeout=10) as live:
                assert live.read(4000).startswith(b"FLV")
            (file, *_) = wait_live(found[1].replace("/v1/jobs/main/live.flv", "/"))["outputs"]
            assert (file["kind"], file["connected"]) == ("file", True)
        finally:
            process.kill()


def test_a_taken_port_is_said_and_the_next_one_serves(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ("--from", "test:", *SMALL, "--set", f"http.port={port}", "--for", "1")
        with start(*arguments, folder=tmp_path) as process:
            out, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    assert f"port {port} is taken" in err
    assert re.search(r"http://127\.0\.0\.1:\d+/v1/jobs/main/live\.flv\?key=", out)
    assert f":{port}/" not in out


def test_quiet_is_quiet(tmp_path):
    arguments = ("--from", "test:", "--to", "o.flv", "--for", "1", "--quiet", *SMALL)
    with start(*arguments, folder=tmp_path) as process:
        out, err = process.communicate(timeout=40)
    assert (process.returncode, out, err) == (0, "", "")


def test_secrets_are_not_in_the_process_list_nor_in_what_is_said(tmp_path):
    """C76. The target's server is not there: what is said about that holds no key either."""
    url = f"rtmp://127.0.0.1:9/app/{SECRET}"
    arguments = ("--from", "test:", "--to", url, *SMALL, "--set", "log.level=debug")
    with start(*arguments, folder=tmp_path) as process:
        seen = b""
        deadline = time.monotonic() + 20
        while b"***" not in seen and process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                seen = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            time.sleep(0.005)
        out, err = process.communicate(timeout=40)
    assert b"rtmp://127.0.0.1:9/app/***" in seen
    assert SECRET.encode() not in seen
    assert process.returncode == 21, err
    assert SECRET not in out + err


def test_a_terminal_gets_a_panel(tmp_path):
    leader, follower = pty.openpty()
    arguments = ("--from", "test:", "--for", "2", *SMALL)
    with start(*arguments, folder=tmp_path, stdout=follower, stderr=follower) as process:
        os.close(follower)
        shown = b""
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            if not select.select([leader], [], [], 1.0)[0]:
                continue
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        process.wait(timeout=20)
    os.close(leader)
    text = shown.decode("utf-8", "replace")
    assert process.returncode == 0, text
    for part in ("added latency", "fps in", "Ctrl-C stops", "/v1/jobs/main/live.flv"):
        assert part in text


def test_a_full_disc_ends_the_run_and_is_told(tmp_path):
    """A limit on the size of files stands for the disc; 40 blocks of 512 or 1024 bytes."""
    code = 'ulimit -f 40; exec "$0" -m livefuse run "$@"'
    arguments = ("--from", "test:", "--to", "out.ts", "--for", "60", "--quiet", *SMALL)
    done = subprocess.run(
        ["/bin/sh", "-c", code, sys.executable, *arguments],
        cwd=tmp_path,
        env=ENV | {"XDG_DATA_HOME": str(tmp_path / "data")},  # its audit log begins short
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert done.returncode == 20, done.stderr
    assert "cannot write out.ts" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_input_is_never_written_over(tmp_path):
    """Whatever is asked for, and by whatever name."""
    clip = tmp_path / "in.mp4"
    with start("--from", "test:", "--to", str(clip), "--for", "1", *SMALL, folder=tmp_path) as made:
        made.communicate(timeout=40)
    before = clip.read_bytes()
    (tmp_path / "link.mp4").symlink_to(clip)
    overwrite = ("--set", "record.overwrite=true")
    for options in (("--to", "link.mp4"), ("--to", "out.mp4", "--stats", "in.mp4")):
        arguments = ("--from", "in.mp4", *options, *overwrite, *SMALL)
        with start(*arguments, folder=tmp_path) as process:
            out, err = process.communicate(timeout=40)
        assert (process.returncode, out) == (2, "")
        assert "while it is read" in err
    assert clip.read_bytes() == before
    assert not (tmp_path / "out.mp4").exists()


def test_nothing_is_reported_to_the_makers_of_libraries(tmp_path):
    """(R55) onnxruntime keeps an id of the machine and reports to its makers unless it is told."""
    environment = {**ENV, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    arguments = ("--from", "demo:?size=320x180", "--for", "2", "--quiet", *SMALL)
    with start(*arguments, folder=tmp_path, env=environment) as process:
        _, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    assert {path.name for path in tmp_path.iterdir()} <= {"data"}


def test_a_job_that_was_stopped_over_http_may_go_on(tmp_path):
    """A page puts a job aside for its camera: the process is there for when it comes back."""
    with running("--from", "test:", *SMALL, folder=tmp_path) as (process, page):
        wait_live(page)
        for what in ("stop", "start"):
            request = urllib.request.Request(at(page, f"/v1/jobs/main/{what}"), method="POST")
            with urllib.request.urlopen(request, timeout=15) as answer:
                assert answer.status == 200
            time.sleep(1.0)
            assert process.poll() is None
        wait_live(page)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
