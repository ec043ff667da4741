"""The harness itself: what the servers serve, real clients can read."""

from __future__ import annotations

import json
import subprocess

import av
import pytest

from tests.measure import measure_av_offsets_ms, record
from tests.wire.servers import (
    BackgroundRecording,
    NginxRtmp,
    RtspServer,
    answers,
    find_program,
    is_available,
    push_rtmp,
    record_rtmp,
    require,
    wait_until,
)

pytestmark = pytest.mark.wire


def probe(url):
    require("ffprobe")
    command = [find_program("ffprobe") or "ffprobe", "-v", "error", "-rtsp_transport", "tcp"]
    command += ["-show_streams", "-of", "json", url]
    done = subprocess.run(command, capture_output=True, timeout=20, check=True)
    return {s["codec_type"]: s["codec_name"] for s in json.loads(done.stdout)["streams"]}


def test_rtsp_serves_picture_and_sound_in_step(rtsp_face):
    assert probe(rtsp_face.url) == {"video": "h264", "audio": "aac"}
    recording = record(rtsp_face.url, frames=75)
    assert recording.is_strictly_increasing()
    # A low-latency reader throws away what it probed, so it begins at a later keyframe.
    assert recording.video[0].counter in (0, 30, 60)
    offsets_ms = measure_av_offsets_ms(recording)
    assert offsets_ms
    assert max(abs(offset) for offset in offsets_ms) < 20


def test_rtsp_wants_the_password(short_clip):
    with RtspServer(short_clip, user="cam", password="s3cret") as server:
        assert "s3cret" not in server.open_url
        with pytest.raises(av.error.HTTPUnauthorizedError):
            av.open(server.open_url, options={"rtsp_transport": "tcp"}, timeout=5)
        assert record(server.url, frames=10).video_codec == "h264"


def test_rtsp_knows_one_mount_only(rtsp_face):
    wrong = rtsp_face.url.replace("/stream", "/nothing")
    with pytest.raises(av.error.HTTPNotFoundError):
        av.open(wrong, options={"rtsp_transport": "tcp"}, timeout=5)


def test_rtsp_goes_on_after_the_end_of_the_file(bars_clip):
    with RtspServer(bars_clip, is_looping=True) as server:
        recording = record(server.url, seconds=3.6)
    counters = [picture.counter for picture in recording.video]
    assert counters.index(89) < len(counters) - 1
    assert counters[counters.index(89) + 1] == 0


def test_rtmp_push_reaches_a_reader_and_the_record(nginx, short_clip):
    reading = BackgroundRecording(nginx.url("relay"), frames=60)
    with push_rtmp(short_clip, nginx.url("relay")) as push:
        wait_until(lambda: nginx.is_publishing("relay"), 5, "publisher on the stat page")
        wait_until(lambda: nginx.count_bytes_in("relay") > 10_000, 5, "data on the stat page")
        recording = reading.result()
        assert push.wait(10) == 0
    assert recording.video_codec == "h264"
    assert recording.audio_codec == "aac"
    assert recording.is_strictly_increasing()
    assert max(abs(offset) for offset in measure_av_offsets_ms(recording)) < 20
    wait_until(lambda: not nginx.is_publishing("relay"), 5, "end of the stream")
    kept = record(nginx.recording_path("relay"))
    assert [picture.counter for picture in kept.video] == list(range(90))


def test_a_server_stops_and_starts_on_its_port(bars_clip):
    with NginxRtmp() as server:
        port = server.port
        with push_rtmp(bars_clip, server.url(), is_looping=True):
            assert record_rtmp(server.url(), frames=5).video
        server.stop()
        assert not server.is_running
        assert not answers(port)
        server.start()
        assert server.port == port
        with push_rtmp(bars_clip, server.url(), is_looping=True):
            assert record_rtmp(server.url(), frames=5).video


def test_a_paused_server_is_silent_until_resumed(nginx):
    assert "<rtmp>" in nginx.read_stat()
    nginx.pause()
    try:
        with pytest.raises(TimeoutError):
            nginx.read_stat(timeout_s=0.3)
    finally:
        nginx.resume()
    assert "<rtmp>" in nginx.read_stat()


def test_a_missing_program_is_a_skip_with_its_name():
    assert not is_available("no-such-program-here")
    with pytest.raises(pytest.skip.Exception, match="no-such-program-here"):
        require("no-such-program-here")
