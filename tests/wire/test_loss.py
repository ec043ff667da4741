"""The input goes away and comes back; whoever watches keeps watching (C32, C33, C35)."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time

import av
import pytest

from tests.measure import measure_av_offsets_ms, record
from tests.wire.servers import NginxRtmp, RtspServer, require, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]

RUN = [sys.executable, "-m", "livefuse", "run", "--set", "http.enabled=false", "--quiet"]


def read_stamps(path, kind):
    with av.open(str(path)) as container:
        stream = container.streams.get({kind: 0})[0]
        return [
            float(packet.dts * packet.time_base)
            for packet in container.demux(stream)
            if packet.dts is not None
        ]


def check_in_step(path, from_s):
    """Assert that flashes and beeps fall together after `from_s` (C51)."""
    recording = record(path)
    recording.video = [picture for picture in recording.video if picture.pts_s > from_s]
    offsets = measure_av_offsets_ms(recording)
    assert len(offsets) >= 3
    assert max(map(abs, offsets)) <= 40, offsets


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("leave", "come_back"),
    [(RtspServer.pause, RtspServer.resume), (RtspServer.stop, RtspServer.start)],
    ids=["stalls", "gone"],
)
def test_the_rtmp_session_outlives_the_rtsp_server(face_clip, tmp_path, leave, come_back):
    """Held within a second of the last picture, back within five of its return, never redialled."""
    require("nginx", "gst-rtsp-server", "ffmpeg")
    out, stats_path = tmp_path / "far.mkv", tmp_path / "stats.json"
    with NginxRtmp() as server, RtspServer(face_clip, is_looping=True) as source:
        job = subprocess.Popen(
            [*RUN, "--from", source.url, "--to", server.url("out"), "--stats", str(stats_path),
             "--set", "ingest.read_timeout_ms=2000"]
        )  # fmt: skip
        wait_until(lambda: server.is_publishing("out"), 20)
        far = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-y", "-rw_timeout", "3000000", "-i", server.url("out"),
             "-c", "copy", str(out)]
        )  # fmt: skip
        try:
            time.sleep(5)
            leave(source)
            time.sleep(6)
            come_back(source)
            time.sleep(9)
        finally:
            end(job)
            far.wait(20)  # its stream is over
    stats = json.loads(stats_path.read_text("utf-8"))
    assert stats["counts"]["held_frames"] >= 15
    assert stats["counts"]["silent_packets"] >= 100
    assert [output["reconnects"] for output in stats["outputs"]] == [0]
    for kind in ("video", "audio"):
        stamps = read_stamps(out, kind)
        steps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
        assert min(steps) >= 0
        assert max(steps) <= 1.5
        assert stamps[-1] - stamps[0] > 12
    # At the end it is the source's picture again, at the source's rate, in step with its sound.
    pictures = read_stamps(out, "video")
    assert sum(stamp > pictures[-1] - 3 for stamp in pictures) >= 60
    check_in_step(out, pictures[-1] - 6)
