"""Recorded from real servers through a restart of theirs, and played again (C32, C33)."""

from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
import time

import av
import pytest

from livefuse.clock import ManualClock
from livefuse.config import IngestConfig
from livefuse.ingest.playback import InputEvent, open_recording
from livefuse.ingest.reader import Item
from livefuse.ingest.replay import ReplayIngest
from livefuse.ingest.source import Source
from tests.measure import measure_av_offsets_ms, record
from tests.sinks import CollectingSink
from tests.wire.servers import NginxRtmp, Push, RtspServer, require, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

LIVEFUSE = [sys.executable, "-m", "livefuse"]
QUICK = ["--set", "ingest.read_timeout_ms=2000", "--set", "ingest.reconnect_min_ms=300"]
QUICK += ["--set", "ingest.open_timeout_ms=20000", "--quiet"]
MAX_OFFSET_MS = 40


class LatePush(Push):
    """A push of a file's rest, from a second on."""

    def __init__(self, path, url, from_s):
        super().__init__(path, url)
        self._from_s = from_s

    def command(self):
        command = super().command()
        place = command.index("-i")
        return [*command[:place], "-ss", str(self._from_s), *command[place:]]


def start_recording(url, path):
    return subprocess.Popen([*LIVEFUSE, "record", "--from", url, str(path), *QUICK])


def wait_recording(path, size=20_000):
    wait_until(lambda: path.exists() and path.stat().st_size > size, 20, "recording")


def end_recording(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0


def read(path):
    return list(open_recording(path, IngestConfig()).read())


def assert_two_connections(path):
    entries = read(path)
    sources = [entry for entry in entries if isinstance(entry, Source)]
    assert len(sources) == 2
    states = [entry.state for entry in entries if isinstance(entry, InputEvent)]
    lost = states.index("lost")
    assert "live" in states[:lost]
    assert "live" in states[lost:]
    assert states[-1] == "ended"
    place = next(i for i, entry in enumerate(entries) if entry is sources[1])
    for part in (entries[:place], entries[place:]):
        items = [entry for entry in part if isinstance(entry, Item)]
        assert sum(item.is_video for item in items) > 45
        assert sum(not item.is_video for item in items) > 60
        assert items[0].arrival_ns <= items[-1].arrival_ns
    return sources


def play(path):
    sink = CollectingSink(capacity=4)
    ReplayIngest(f"replay:{path}", IngestConfig(), ManualClock(10**12)).run(sink)
    return sink


SEAM_S = 0.2


def is_increasing(values):
    return all(later > earlier for earlier, later in itertools.pairwise(values))


def record_rtmp_through_a_restart(clip, path):
    """The recorder is there before anybody publishes: it waits as long as it may."""
    with NginxRtmp() as server:
        url = server.url("cam")
        process = start_recording(url, path)
        try:
            time.sleep(3)
            with Push(clip, url):
                wait_recording(path)
                time.sleep(4)
                server.stop()
            server.start()
            with LatePush(clip, url, 7):
                wait_until(lambda: server.is_publishing("cam"), 10)
                time.sleep(5)
        finally:
            end_recording(process)


def leave_out_headless(path, pictures):
    """Return the pictures but for those between a seam and the first keyframe after it."""
    with av.open(str(path)) as file:
        packets = [packet for packet in file.demux(video=0) if packet.is_keyframe]
        keys = [float(p.pts * p.time_base) for p in packets if p.pts is not None and p.time_base]
    seams = [b.pts_s for a, b in itertools.pairwise(pictures) if b.pts_s - a.pts_s > SEAM_S]
    spans = [(seam, next((key for key in keys if key >= seam), math.inf)) for seam in seams]
    return [p for p in pictures if not any(begin <= p.pts_s < end for begin, end in spans)]


def check_played(path, *, least, seams=0):
    """Return the counters that any player sees in a file, whose sound is in step.

    At a seam a burst comes: what is live may leave out the first pictures, and so a flash's start.
    A file has what came in: a server that is joined between two keyframes sends pictures that no
    player can make out, but only there.
    """
    seen = record(path, timeout_s=30)
    clear = leave_out_headless(path, seen.video)
    counters = [picture.counter for picture in clear if picture.counter is not None]
    assert len(counters) == len(clear)
    offsets = measure_av_offsets_ms(seen)
    assert len(offsets) >= least
    assert sorted(map(abs, offsets))[-1 - seams] <= MAX_OFFSET_MS, offsets
    return counters


def test_rtmp_through_a_restart_of_the_server_and_out_again(face_clip, tmp_path):
    """Counter and sound are in step in the file itself, in its replay, and published again."""
    require("nginx", "ffmpeg")
    path, out = tmp_path / "rtmp.mkv", tmp_path / "again.mp4"
    record_rtmp_through_a_restart(face_clip, path)
    assert_two_connections(path)
    counters = check_played(path, least=4)
    assert is_increasing(counters)
    assert counters[-1] > 230

    sink = play(path)
    assert is_increasing(sink.counters)
    assert is_increasing(sink.pts)
    assert is_increasing([packet.pts for packet in sink.packets])
    assert sink.counts["reconnect"] == 1

    again = [*LIVEFUSE, "run", "--from", f"replay:{path}", "--to", str(out), "--operations", "none"]
    subprocess.run([*again, "--set", "http.enabled=false", "--quiet"], check=True, timeout=60)
    numbers = check_played(out, least=4, seams=1)
    assert numbers == sorted(numbers)  # some are held
    assert len(set(numbers)) > 0.7 * len(counters)


def test_rtsp_through_a_restart_of_the_server(face_clip, tmp_path):
    require("gst-rtsp-server", "ffmpeg")
    path = tmp_path / "rtsp.mkv"
    with RtspServer(face_clip) as server:
        process = start_recording(server.url, path)
        try:
            wait_recording(path)
            time.sleep(3)
            server.stop()
            time.sleep(0.5)
            server.start()
            time.sleep(5)
        finally:
            end_recording(process)
    sources = assert_two_connections(path)
    assert [source.audio.codec for source in sources if source.audio] == ["aac", "aac"]
    sink = play(path)
    # The server begins at its first picture for each who comes.
    again = next(i for i, (a, b) in enumerate(itertools.pairwise(sink.counters), 1) if b < a)
    assert is_increasing(sink.counters[:again])
    assert is_increasing(sink.counters[again:])
    assert is_increasing(sink.pts)
    check_played(path, least=4)


def test_a_job_writes_what_it_keeps_when_asked_and_when_its_input_is_lost(face_clip, tmp_path):
    require("gst-rtsp-server", "ffmpeg")
    kept = tmp_path / "kept"
    with RtspServer(face_clip) as server:
        job = subprocess.Popen(
            [*LIVEFUSE, "run", "--from", server.url, "--to", str(tmp_path / "out.mp4"),
             "--operations", "none", "--set", "http.enabled=false", "--quiet",
             "--set", "replay.keep_s=2", "--set", f"replay.folder={kept}"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            wait_recording(tmp_path / "out.mp4", 1000)
            time.sleep(4)
            job.send_signal(signal.SIGUSR1)
            assert job.stdout is not None
            assert job.stdout.readline().startswith(f"recording: {kept}/main-")
            assert job.poll() is None
            server.stop()
            wait_until(lambda: list(kept.glob("*degraded_input.mkv.jsonl")), 10, "bad health")
        finally:
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=15)
    assert job.returncode == 0
    assert len(list(kept.glob("*.mkv"))) == 2
    for reason in ("asked", "degraded_input"):
        (path,) = kept.glob(f"*-{reason}.mkv")
        sink = play(path)
        assert 55 <= len(sink.counters) <= 110
        assert is_increasing(sink.counters)
        assert sink.packets
