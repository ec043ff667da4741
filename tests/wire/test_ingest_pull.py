"""Live sources over real protocols, in the process's own threads."""

from __future__ import annotations

import functools
import http.server
import itertools
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest import create_ingest
from tests.sinks import CollectingSink
from tests.wire.servers import (
    HOST,
    Push,
    RtspServer,
    find_free_port,
    find_program,
    push_rtmp,
    require,
    wait_until,
)

pytestmark = pytest.mark.wire


@contextmanager
def running(url, config=None, *, sink=None, **options):
    """An ingest in its thread; on leaving it has to end within two seconds."""
    ingest = create_ingest(
        url, config or IngestConfig(), SystemClock(), paced=True, every_frame=False
    )
    sink = sink or CollectingSink(ingest=ingest, **options)
    thread = threading.Thread(target=ingest.run, args=(sink,), name="livefuse-test-ingest")
    thread.start()
    try:
        yield sink
    finally:
        ingest.stop()
        thread.join(2)
        assert not thread.is_alive(), "the ingest did not end within 2 s of stop"


def check_flow(sink, frames):
    """Wait for `frames` and check that they are in order, with sound in step."""
    wait_until(lambda: len(sink.pts) >= frames, 15, f"{frames} frames, but {len(sink.pts)}")
    wait_until(lambda: sink.packets, 5, "sound")
    assert all(b > a for a, b in itertools.pairwise(sink.pts.copy()))
    stamps = [packet.pts for packet in sink.packets.copy()]
    assert all(b > a for a, b in itertools.pairwise(stamps))
    assert sink.pts[0] == 0
    assert abs(stamps[0]) < TIME_BASE_HZ // 2
    assert abs(stamps[-1] - sink.pts[-1]) < TIME_BASE_HZ // 2


def check_counter(sink):
    """The counter in the picture rises by as much as the time does."""
    seen = [(c, p) for c, p in zip(sink.counters, sink.pts, strict=False) if c is not None]
    assert len(seen) > 20
    for (c0, p0), (c1, p1) in itertools.pairwise(seen):
        assert c1 > c0
        assert abs((p1 - p0) - (c1 - c0) * 3000) < 1500


def test_rtsp_gives_pictures_and_sound_in_step(rtsp_face):
    with running(rtsp_face.url) as sink:
        check_flow(sink, 60)
        check_counter(sink)
        assert sink.media.is_live
        assert (sink.media.width, sink.media.height) == (640, 360)
        assert sink.media.audio.codec == "aac"
    assert sink.states == ["connecting", "live", "ended"]


def test_rtsp_first_picture_is_the_first_keyframe(rtsp_face):
    with running(rtsp_face.url) as sink:
        wait_until(lambda: sink.counters, 10)
        assert sink.counters[0] == 0


def test_rtmp_is_pulled(nginx, face_clip):
    with push_rtmp(face_clip, nginx.url("pull"), is_looping=True):
        wait_until(lambda: nginx.is_publishing("pull"), 10)
        with running(nginx.url("pull")) as sink:
            check_flow(sink, 60)
            check_counter(sink)


@pytest.fixture(scope="module")
def sparse_clip(face_clip, tmp_path_factory):
    """The face with a keyframe every 3 s, in fragments: sound and pictures by turns."""
    clip = tmp_path_factory.mktemp("sparse") / "far.mp4"
    options = ("--operations", "none", "--quiet", "--set", "encode.keyframe_interval_s=3")
    command = [sys.executable, "-m", "livefuse", "run", "--from", str(face_clip), "--to", str(clip)]
    subprocess.run([*command, *options], check=True, timeout=60)
    return clip


@pytest.mark.parametrize("wait_s", [0.0, 0.6, 1.1, 1.7])
def test_rtmp_is_joined_anywhere_between_keyframes_far_apart(nginx, sparse_clip, wait_s):
    """The header names no streams: sound comes at once, pictures with the next keyframe."""
    with push_rtmp(sparse_clip, nginx.url("far"), is_looping=True):
        wait_until(lambda: nginx.is_publishing("far"), 10)
        time.sleep(wait_s)
        with running(nginx.url("far")) as sink:
            wait_until(lambda: len(sink.counters) > 10, 15, "pictures")
        assert sink.counts["reconnect"] == 0


def test_lost_rtsp_server_comes_back_and_time_goes_on(short_clip):
    """C32, the input's half."""
    config = IngestConfig(reconnect_min_ms=100, reconnect_max_ms=500)
    with RtspServer(short_clip, is_looping=True) as server, running(server.url, config) as sink:
        check_flow(sink, 20)
        server.stop()
        wait_until(lambda: "lost" in sink.states, 10, "loss")
        before, last = len(sink.pts), sink.pts[-1]
        server.start()
        wait_until(lambda: len(sink.pts) > before + 20, 10, "return")
        assert sink.pts[before] > last
        assert all(b > a for a, b in itertools.pairwise(sink.pts.copy()))
        assert sink.counts["reconnect"] >= 1
        sound = [packet.pts for packet in sink.packets.copy()]
        assert abs(sound[-1] - sink.pts[-1]) < TIME_BASE_HZ // 2


def test_mpegts_over_udp(face_clip):
    port = find_free_port(socket.SOCK_DGRAM)
    with (
        running(f"udp://{HOST}:{port}", IngestConfig(open_timeout_ms=10_000)) as sink,
        Push(face_clip, f"udp://{HOST}:{port}?pkt_size=1316", is_looping=True, form="mpegts"),
    ):
        check_flow(sink, 30)
        assert sink.media.audio.extradata


def test_srt_by_its_own_program(face_clip):
    require("srt-live-transmit", "ffmpeg")
    port, local = find_free_port(socket.SOCK_DGRAM), find_free_port(socket.SOCK_DGRAM)
    sender = subprocess.Popen(
        [
            find_program("srt-live-transmit") or "",
            "-q",
            f"udp://{HOST}:{local}",
            f"srt://{HOST}:{port}?mode=listener",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"udp://{HOST}:{local}?pkt_size=1316"
        with (
            Push(face_clip, url, is_looping=True, form="mpegts"),
            running(f"srt://{HOST}:{port}", IngestConfig(open_timeout_ms=10_000)) as sink,
        ):
            check_flow(sink, 30)
    finally:
        sender.terminate()
        sender.wait(5)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args):
        pass


@contextmanager
def serving(folder):
    """A web server of `folder`."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer((HOST, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(2)


def convert(clip, target, *options):
    require("ffmpeg")
    command = [find_program("ffmpeg") or "", "-v", "error", "-i", str(clip), "-c", "copy"]
    subprocess.run([*command, *options, str(target)], check=True, timeout=20)


def test_file_over_http_goes_at_its_own_speed_and_ends(short_clip, tmp_path):
    clock = SystemClock()
    # This server cannot seek, so the index has to come first.
    convert(short_clip, tmp_path / "clip.mp4", "-movflags", "+faststart")
    with serving(tmp_path) as url, running(f"{url}/clip.mp4") as sink:
        wait_until(lambda: sink.pts, 10)
        started_ns = clock.now_ns()
        wait_until(lambda: "ended" in sink.states, 15, "end")
        assert clock.now_ns() - started_ns > 2_000_000_000
        assert len(sink.pts) == 90
    assert "lost" not in sink.states


def test_hls_playlist(short_clip, tmp_path):
    convert(
        short_clip, tmp_path / "live.m3u8", "-f", "hls", "-hls_time", "1", "-hls_list_size", "0"
    )
    with serving(tmp_path) as url, running(f"{url}/live.m3u8") as sink:
        wait_until(lambda: "ended" in sink.states, 20, "end")
        assert len(sink.pts) == 90
        assert sink.packets
