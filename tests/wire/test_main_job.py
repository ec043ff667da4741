"""The main job over real servers: a live stream in, faces covered, RTMP and a file out."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from livefuse.config import Config
from livefuse.frame import create_frame
from livefuse.pipeline.analysis.detect_step import create_detector
from livefuse.runtime.session import SessionCache
from tests.measure import find_beeps, find_flashes, measure_av_offsets_ms, record
from tests.media import make_clip
from tests.wire.servers import NginxRtmp, RtspServer, find_free_port, require, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

FRAMES = 300
LIVEFUSE = [sys.executable, "-m", "livefuse", "run", "--set", "http.enabled=false", "--quiet"]


@pytest.fixture(scope="module")
def detector():
    """The reference: CenterFace at 640x384."""
    config = Config()
    return create_detector(config, SessionCache(config.models), every_frame=False)


@pytest.fixture(scope="module")
def face_clip(tmp_path_factory):
    """Long enough for 300 frames after everybody has joined."""
    return make_clip(tmp_path_factory.mktemp("main") / "face.mp4", 18.0)


@pytest.fixture(scope="module")
def rtsp_face(face_clip):
    with RtspServer(face_clip) as server:
        yield server


def count_faces(detector, pictures) -> list[int]:
    """Return how many faces are found in each kept picture (BGR)."""
    import cv2

    counts = []
    for picture in pictures:
        frame = create_frame(picture.width, picture.height)
        frame.buffer[:] = cv2.cvtColor(picture.bgr, cv2.COLOR_BGR2YUV_I420)
        counts.append(sum(found.score >= 0.5 for found in detector.detect(frame)))
    return counts


def end(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 0, errors
    return errors


def check_recording(recording, detector, *, frames: int) -> None:
    """Assert what every published stream must be."""
    counters = [p.counter for p in recording.video if p.counter is not None]
    assert len(recording.video) >= frames
    assert len(counters) >= 0.99 * len(recording.video)
    assert all(b > a for a, b in itertools.pairwise(counters)), "C43"
    # How few are dropped is the bench's matter; here the machine may be busy.
    assert counters[-1] - counters[0] + 1 - len(counters) <= frames / 2, "too many were dropped"
    for times in (recording.video_dts_s, recording.audio_dts_s):
        assert all(b > a for a, b in itertools.pairwise(times)), "DTS strictly increase"
    assert len(find_flashes(recording)) >= 5
    assert len(find_beeps(recording)) >= 5
    offsets = measure_av_offsets_ms(recording)
    assert len(offsets) >= 5
    assert max(map(abs, offsets)) <= 40, offsets
    kept = [p for p in recording.video if p.bgr is not None]
    assert len(kept) >= 20
    assert sum(count_faces(detector, kept)) == 0, "a face is bare"


def test_the_check_can_fail(face_clip, detector):
    """The same clip untreated: the reference finds its face in nearly every picture."""
    recording = record(face_clip, frames=90, keep_every=5)
    kept = [p for p in recording.video if p.bgr is not None]
    counts = count_faces(detector, kept)
    assert sum(count == 1 for count in counts) >= 0.95 * len(counts)
    with pytest.raises(AssertionError, match="a face is bare"):
        check_recording(record(face_clip, frames=FRAMES, keep_every=15), detector, frames=FRAMES)


def test_rtsp_to_rtmp_and_a_file(nginx: NginxRtmp, rtsp_face, detector, tmp_path):
    """C43, and C58: 300 frames, in order, covered, in step; the status says what is connected."""
    target, file, stats = nginx.url("main"), tmp_path / "main.mkv", tmp_path / "stats.json"
    process = subprocess.Popen(
        [*LIVEFUSE, "--from", rtsp_face.url, "--to", target, "--to", str(file),
         "--stats", str(stats)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until(lambda: nginx.is_publishing("main"), 20, "livefuse publishes")
        recording = record(target, frames=FRAMES, timeout_s=30, keep_every=10)
    finally:
        errors = end(process)
    assert "Traceback" not in errors
    check_recording(recording, detector, frames=FRAMES)
    assert recording.video_codec == "h264"
    assert recording.audio_codec == "aac"
    check_recording(record(file, keep_every=10), detector, frames=FRAMES)
    figures = json.loads(stats.read_text("utf-8"))
    assert figures["frames_in"] == figures["frames_out"] + sum(figures["dropped"].values())
    assert [output["kind"] for output in figures["outputs"]] == ["rtmp", "file"]
    assert all(output["connected"] for output in figures["outputs"])
    assert "main" not in stats.read_text("utf-8").replace("main.mkv", "").replace(
        '"job": "main"', ""
    )


def test_obs_style_push_into_listen(nginx: NginxRtmp, face_clip, detector):
    """ffmpeg pushes RTMP to us as OBS does."""
    require("ffmpeg")
    url = f"rtmp://127.0.0.1:{find_free_port()}/live/obskey"
    target = nginx.url("pushed")
    process = subprocess.Popen(
        [*LIVEFUSE, "--from", f"listen:{url}", "--to", target], stderr=subprocess.PIPE, text=True
    )
    push = None
    try:
        wait_until(lambda: _can_push(url), 20, "livefuse listens")
        push = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-re", "-i", str(face_clip), "-c", "copy", "-f", "flv", url]
        )
        wait_until(lambda: nginx.is_publishing("pushed"), 20, "livefuse publishes")
        recording = record(target, frames=FRAMES, timeout_s=30, keep_every=10)
    finally:
        errors = end(process)
        if push is not None:
            push.terminate()
            push.wait(10)
    assert "obskey" not in errors
    check_recording(recording, detector, frames=FRAMES - 20)


def _can_push(url: str) -> bool:
    """Look for the listener without connecting: it serves one peer, and that is the pusher."""
    import psutil

    port = urlsplit(url).port
    return any(
        c.laddr.port == port and c.status == psutil.CONN_LISTEN
        for c in psutil.net_connections("tcp")
        if c.laddr
    )
