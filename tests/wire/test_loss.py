"""The input goes away and comes back; whoever watches keeps watching (C32, C33, C35)."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import av
import pytest

from tests.measure import measure_av_offsets_ms, record
from tests.wire.servers import NginxRtmp, RtspServer, require, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]

AWAY_S = 6.0
RUN = [sys.executable, "-m", "livefuse", "run", "--set", "http.enabled=false", "--quiet"]


def read_stamps(path, kind):
    with av.open(str(path)) as container:
        stream = container.streams.get({kind: 0})[0]
        return [
            float(packet.dts * packet.time_base)
            for packet in container.demux(stream)
            if packet.dts is not None
        ]


class Stretch(NamedTuple):
    """A part of a stream whose pictures come at the rate of a hold."""

    stamps: list[float]

    @property
    def start_s(self):
        return self.stamps[0]

    @property
    def end_s(self):
        return self.stamps[-1]

    @property
    def first_step_s(self):
        return self.stamps[1] - self.stamps[0]

    def count_steps(self):
        return len(self.stamps) - 1


def find_slow_stretch(stamps):
    """Return the longest stretch without half a second at the source's own rate."""
    slow = [b - a > 0.1 for a, b in itertools.pairwise(stamps)]
    best, start = (0, 0), None
    for index in range(len(slow)):
        if not slow[index]:
            continue
        if start is None or not any(slow[max(index - 15, 0) : index]):
            start = index
        best = max(best, (start, index + 1), key=lambda span: stamps[span[1]] - stamps[span[0]])
    return Stretch(stamps[best[0] : best[1] + 1])


def check_hold(pictures):
    """(C32, C35) From a second on, five a second; the source's own within 5 s of its return."""
    away = find_slow_stretch(pictures)
    assert AWAY_S - 1.5 <= away.end_s - away.start_s <= AWAY_S + 5.0
    assert away.first_step_s <= 1.3
    assert away.count_steps() >= 0.8 * 5 * (AWAY_S - 1.0)


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
        wait_until(lambda: server.is_publishing("out"), 60)
        far = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-y", "-rw_timeout", "3000000", "-i", server.url("out"),
             "-c", "copy", str(out)]
        )  # fmt: skip
        try:
            time.sleep(5)
            leave(source)
            time.sleep(AWAY_S)
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
    pictures = read_stamps(out, "video")
    check_hold(pictures)
    # At the end it is the source's picture again, at the source's rate, in step with its sound.
    assert sum(stamp > pictures[-1] - 3 for stamp in pictures) >= 60
    check_in_step(out, pictures[-1] - 6)
