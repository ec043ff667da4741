"""A file whose writer is killed stays playable; players take the live stream by HTTP bytes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from livefuse.config import HttpConfig
from livefuse.publish.base import FILE_SUFFIXES
from livefuse.publish.flv import LiveStream
from tests.streams import LiveFeed, read_back
from tests.wire.servers import NginxRtmp, require, wait_until

pytestmark = pytest.mark.wire
ROOT = str(Path(__file__).parents[2])

WRITER = """
import sys, time
from pathlib import Path
from livefuse.config import RecordConfig
from livefuse.publish.record import FileOutput
from tests.streams import make_media

media = make_media(120)
output = FileOutput(Path(sys.argv[1]), RecordConfig(), lossless=True)
output.open(media.streams)
for packet in media.packets:
    output.send(packet)
while output.status().packets < len(media.packets):
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("suffix", FILE_SUFFIXES)
def test_a_file_is_playable_after_its_writer_was_killed(tmp_path, suffix):
    """All but the last second, at most, of 4 s; half a second is what the containers hold back."""
    require("ffprobe")
    path = tmp_path / f"killed{suffix}"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"ready"
    process.kill()
    process.wait(5)
    process.stdout.close()
    found = read_back(path)
    assert found.codecs == ["h264", "aac"]
    assert len(found.pictures) >= 100
    assert found.corrupt == 0
    probed = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "format=duration", str(path)],
        capture_output=True,
        timeout=20,
        check=True,
    )
    assert b"duration=" in probed.stdout


def test_all_files_of_a_live_job_end_where_it_was_killed(tmp_path):
    """The process ends by SIGKILL: each container is playable to within a second."""
    paths = [tmp_path / f"killed{suffix}" for suffix in FILE_SUFFIXES]
    targets = [word for path in paths for word in ("--to", str(path))]
    process = subprocess.Popen(
        [sys.executable, "-m", "livefuse", "run", "--from", "test:?size=320x180&fps=30", *targets,
         "--mode", "live", "--operations", "none", "--quiet", "--set", "http.enabled=false"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    try:
        wait_until(lambda: all(map(Path.exists, paths)), 30, "files")
        began = time.monotonic()
        time.sleep(4)
    finally:
        process.kill()
        process.wait(5)
    lasted_s = time.monotonic() - began
    for path in paths:
        found = read_back(path)
        assert found.codecs == ["h264", "aac"]
        assert found.corrupt == 0
        assert found.pictures[-1] >= lasted_s - 1.0, path.suffix
        assert found.of("audio")[-1].pts_s >= lasted_s - 1.0, path.suffix


def test_a_disk_that_is_full_for_a_while_harms_nobody_else(tmp_path):
    """The limit is the system's own, lifted later; RTMP goes on, the recording in another file."""
    first, second, stats = tmp_path / "a.mkv", tmp_path / "a-2.mkv", tmp_path / "stats.json"
    with NginxRtmp() as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "livefuse", "run", "--from", "test:?size=320x180&fps=30",
             "--to", str(first), "--to", server.url("out"), "--operations", "none", "--quiet",
             "--set", "http.enabled=false", "--stats", str(stats)],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT}, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            wait_until(lambda: first.exists() and first.stat().st_size > 60_000, 30, "a file")
            _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, hard))
            wait_until(lambda: first.stat().st_size >= 99_000, 10, "a full disk")
            time.sleep(2)  # tried again meanwhile
            assert not second.exists()
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            wait_until(lambda: second.exists() and second.stat().st_size > 60_000, 20, "another")
        finally:
            process.terminate()
            _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert b"File too large" in said
    outputs = json.loads(stats.read_text("utf-8"))["outputs"]
    assert [(o["reconnects"], o["error"]) for o in outputs] == [(1, ""), (0, "")]
    for path in (first, second):
        found = read_back(path)
        assert found.packets[0].is_keyframe
        assert len(found.pictures) >= 20
        assert found.corrupt == 0


@pytest.mark.parametrize(("form", "demuxer"), [("flv", "flv"), ("ts", "mpegts")])
def test_a_viewer_that_comes_late_sees_fresh_pictures_at_once(form, demuxer):
    """C02: the first picture is one that was made after the viewer came."""
    streams: list[LiveStream] = []

    def send(packet):
        for stream in streams:
            stream.send(packet)

    with LiveFeed(send, noisy=True) as feed:
        stream = LiveStream(form, HttpConfig(), feed.encoder.force_keyframe)
        stream.open(feed.streams)
        streams.append(stream)
        threading.Event().wait(0.7)  # well after the first keyframe, long before the next
        woken = threading.Event()
        viewer = stream.subscribe(woken.set)
        data = b""
        while len(data) < 200_000 and woken.wait(5):
            woken.clear()
            data += viewer.read() or b""
        viewer.close()
    found = read_back(data, demuxer)
    assert found.packets[0].is_keyframe
    assert found.pictures[0] > 0.5
    assert len(found.pictures) > 5
