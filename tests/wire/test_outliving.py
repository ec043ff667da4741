"""What breaks inside a live job is made anew; the server and its viewers do not notice (C12)."""

from __future__ import annotations

import itertools
import subprocess
import threading
import time
from functools import partial

import av
import pytest
import structlog

from livefuse.clock import SystemClock
from livefuse.config import LogConfig, load_config
from livefuse.ingest.decode import DecodeStage
from livefuse.job.spec import JobSpec
from livefuse.pipeline.steps import Pipeline
from livefuse.publish.encode import VideoEncoder
from livefuse.telemetry import set_up_logging
from livefuse.workers.local import Worker
from tests.wire.servers import NginxRtmp, RtspServer, require, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]

SETTINGS = (
    "http.enabled=false",
    "watchdog.step_limit_ms=3000",
    "governor.enabled=false",  # what a busy machine is spared is not what this is about
)


@pytest.fixture(autouse=True)
def _log():
    set_up_logging(LogConfig())
    yield
    structlog.reset_defaults()


class Seam:
    """A method that hangs or raises once when it is told to."""

    def __init__(self, monkeypatch, owner, name, is_meant=lambda *_args, **_kwargs: True):
        self.released = threading.Event()
        self._fault = ""
        original = getattr(owner, name)

        def wrapped(*args, **kwargs):
            if self._fault and is_meant(*args, **kwargs):
                fault, self._fault = self._fault, ""
                if fault == "raise":
                    raise ZeroDivisionError("nobody foresaw this")
                self.released.wait(60)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapped)

    def set_off(self, fault):
        self._fault = fault


def read_stamps(path, kind):
    with av.open(str(path)) as container:
        stream = container.streams.get({kind: 0})[0]
        return [
            float(packet.dts * packet.time_base)
            for packet in container.demux(stream)
            if packet.dts is not None
        ]


def has_restarted(job, restart):
    return restart in job.statistics().restarts


def break_one_after_the_other(job, faults):
    """Set off each fault, wait until what it broke was made anew and all is well, then a moment."""
    for seam, fault, restart in faults:
        seam.set_off(fault)
        wait_until(partial(has_restarted, job, restart), 10, restart)
        wait_until(lambda: job.statistics().health == "ONLINE", 15, "way back")
        time.sleep(1)
    for seam, *_ in faults:
        seam.released.set()
    time.sleep(1)


def test_one_recording_whatever_breaks(face_clip, tmp_path, monkeypatch):
    """A pipeline that hangs; an encoder and a decode loop that raise, and then hang."""
    require("nginx", "gst-rtsp-server", "ffmpeg")
    step = Seam(monkeypatch, Pipeline, "run_step", lambda _self, _state, name: name == "blur")
    encoder = Seam(monkeypatch, VideoEncoder, "encode")
    decode = Seam(monkeypatch, DecodeStage, "take")
    faults = (
        (step, "hang", "pipeline_hung"),
        (encoder, "raise", "encode_died"),
        (encoder, "hang", "encode_hung"),
        (decode, "raise", "decode_died"),
        (decode, "hang", "decode_hung"),
    )
    out = tmp_path / "far.mkv"
    with NginxRtmp() as server, RtspServer(face_clip, is_looping=True) as source:
        worker = Worker(load_config(settings=SETTINGS), SystemClock())
        spec = JobSpec(source.url, (server.url("out"),), ("detect", "blur"), mode="live")
        job = worker.add_job("job", spec)
        job.start()
        assert job.wait_started(20)
        far = subprocess.Popen(
            ["ffmpeg", "-v", "error", "-y", "-rw_timeout", "5000000", "-i", server.url("out"),
             "-c", "copy", str(out)]
        )  # fmt: skip
        try:
            wait_until(lambda: out.exists() and out.stat().st_size > 0, 15, "far end")
            break_one_after_the_other(job, faults)
        finally:
            assert job.stop(20)
            far.wait(20)  # its stream is over
    assert job.error is None
    check(job.statistics(), out, faults)


def check(stats, out, faults):
    """One recording, of one connection, without a hole."""
    assert stats.restarts == {name: 1 for _, _, name in faults}
    assert [output["reconnects"] for output in stats.outputs] == [0]
    for kind in ("video", "audio"):
        stamps = read_stamps(out, kind)
        steps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
        assert min(steps) > 0, kind
        assert max(steps) <= 1.5, kind
        assert stamps[-1] - stamps[0] > 12
    with av.open(str(out)) as container:
        assert len({(p.width, p.height) for p in container.decode(video=0)}) == 1
