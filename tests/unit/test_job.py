"""The life of a job at its edges: a fault while it comes up, a stop before anything came."""

from __future__ import annotations

import threading

import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config, HttpConfig
from livefuse.errors import JobError, ModelError, PublishError
from livefuse.job import Job
from livefuse.pipeline.steps import Pipeline
from livefuse.publish.encode import VideoEncoder
from livefuse.spec import JobSpec
from livefuse.stages import Stages
from tests.faces import create_services, share_sessions

SECRET = "hunter2"
SPEC = JobSpec(
    source="test:?size=64x64&frames=30", targets=(), operations=("detect", "blur"), mode="live"
)


def create_job(create_pipeline, spec=SPEC):
    return Job("job", spec, Config(http=HttpConfig(enabled=False)), SystemClock(), create_pipeline)


class BrokenPipeline:
    """Fails with an error that nobody foresaw, when it is to get ready."""

    def warm_up(self, width, height, token):
        raise RuntimeError(f"cannot read rtmp://host/live/{SECRET}")


def test_a_fault_nobody_foresaw_is_no_success():
    """Whoever waits for the end sees the error as soon as the end, its secrets hidden (C76)."""
    job = create_job(lambda mode, token: BrokenPipeline())
    job.start()
    with pytest.raises(JobError, match="RuntimeError") as caught:
        job.wait_started(10)
    assert job.wait(10)
    assert job.error is caught.value
    assert job.statistics().state == "failed"
    assert SECRET not in str(caught.value)


def test_a_model_that_is_not_there_is_told_as_it_is():
    def refuse(mode, token):
        raise ModelError("there is no model")

    job = create_job(refuse)
    job.start()
    with pytest.raises(ModelError, match="there is no model"):
        job.wait_started(10)
    assert job.wait(10)


def test_a_stop_while_the_input_is_silent_ends_the_job():
    class Idle:
        def warm_up(self, width, height, token):
            raise AssertionError("nothing came")

    spec = JobSpec(source="udp://127.0.0.1:9", targets=(), operations=(), mode="live")
    job = create_job(lambda mode, token: Idle(), spec)
    job.start()
    assert not job.wait_started(0.2)
    assert job.stop(5)
    assert job.error is None
    assert job.statistics().state == "stopped"


def test_an_encoder_that_fails_when_the_input_is_over_does_not_hold_up_the_end(
    tmp_path, monkeypatch
):
    """Frames wait in both rings then, and nobody takes them any more."""
    input_is_over = threading.Event()
    end_input = Stages.end_input

    def note_end(self):
        end_input(self)
        input_is_over.set()

    def fail(self, frame):
        if frame.pts >= 5 * 3000:
            assert input_is_over.wait(10)
            raise PublishError("the encoder failed")
        return []

    class Through(Pipeline):
        def warm_up(self, width, height, token):
            pass

    through = Through(Config(), share_sessions(), SystemClock(), create_services())
    monkeypatch.setattr(Stages, "end_input", note_end)
    monkeypatch.setattr(VideoEncoder, "encode", fail)
    # Seven frames more: two in each ring, one between the pipeline's parts, one in each hand.
    source = "test:?size=64x64&frames=13&audio=0"
    spec = JobSpec(source, (str(tmp_path / "out.mkv"),), (), mode="every_frame")
    job = create_job(lambda mode, token: through, spec)
    job.start()
    assert job.wait(20)
    assert isinstance(job.error, PublishError)
    assert job.statistics().state == "failed"
