"""A file whose writer is killed stays playable; players take the live stream by HTTP bytes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from livefuse.config import HttpConfig
from livefuse.publish.base import FILE_SUFFIXES
from livefuse.publish.flv import LiveStream
from tests.streams import LiveFeed, read_back
from tests.wire.servers import require

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
    """All but the last second, at most, of 4 s."""
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
    assert len(found.pictures) >= 85
    assert found.corrupt == 0
    probed = subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "format=duration", str(path)],
        capture_output=True,
        timeout=20,
        check=True,
    )
    assert b"duration=" in probed.stdout


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
