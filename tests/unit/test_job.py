"""The life of a job at its edges: a fault while it comes up, a stop before anything came."""

from __future__ import annotations

import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config, HttpConfig
from livefuse.errors import JobError, ModelError
from livefuse.job import Job, JobSpec

SECRET = "hunter2"
SPEC = JobSpec(
    source="test:?size=64x64&frames=30", targets=(), operations=("detect", "blur"), mode="live"
)


def create_job(create_pipeline, spec=SPEC):
    return Job("job", spec, Config(http=HttpConfig(enabled=False)), SystemClock(), create_pipeline)


class BrokenPipeline:
    """Fails with an error that nobody foresaw, when it is to get ready."""

    def warm_up(self, width, height):
        raise RuntimeError(f"cannot read rtmp://host/live/{SECRET}")


def test_a_fault_nobody_foresaw_is_no_success():
    """Whoever waits for the end sees the error as soon as the end, its secrets hidden (C76)."""
    job = create_job(lambda mode: BrokenPipeline())
    job.start()
    with pytest.raises(JobError, match="RuntimeError") as caught:
        job.wait_started(10)
    assert job.wait(10)
    assert job.error is caught.value
    assert job.statistics().state == "failed"
    assert SECRET not in str(caught.value)


def test_a_model_that_is_not_there_is_told_as_it_is():
    def refuse(mode):
        raise ModelError("there is no model")

    job = create_job(refuse)
    job.start()
    with pytest.raises(ModelError, match="there is no model"):
        job.wait_started(10)
    assert job.wait(10)


def test_a_stop_while_the_input_is_silent_ends_the_job():
    class Idle:
        def warm_up(self, width, height):
            raise AssertionError("nothing came")

    spec = JobSpec(source="udp://127.0.0.1:9", targets=(), operations=(), mode="live")
    job = create_job(lambda mode: Idle(), spec)
    job.start()
    assert not job.wait_started(0.2)
    assert job.stop(5)
    assert job.error is None
    assert job.statistics().state == "stopped"
