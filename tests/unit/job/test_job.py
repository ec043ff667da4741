"""The life of a job at its edges: a fault while it comes up, a stop before anything came."""

from __future__ import annotations

import threading
import time

import pytest

from livefuse.clock import SystemClock
from livefuse.config import Config, HttpConfig, load_config
from livefuse.errors import JobError, ModelError, PublishError
from livefuse.job.job import Job
from livefuse.job.spec import JobSpec
from livefuse.job.stages import Stages
from livefuse.pipeline.steps import Pipeline
from livefuse.publish.encode import VideoEncoder
from livefuse.publish.fanout import FanOut
from livefuse.token import create_token
from tests.faces import create_services, share_sessions

SECRET = "hunter2"
SPEC = JobSpec(
    source="test:?size=64x64&frames=30", targets=(), operations=("detect", "blur"), mode="live"
)


def create_job(create_pipeline, spec=SPEC):
    return Job("job", spec, Config(http=HttpConfig(enabled=False)), SystemClock(), create_pipeline)


class BrokenPipeline:
    """Fails with an error that nobody foresaw, when it is to get ready."""

    def prepare(self, token):
        pass

    def warm_up(self, width, height, token):
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


class Idle:
    def prepare(self, token):
        pass

    def warm_up(self, width, height, token):
        raise AssertionError("nothing came")


def create_silent(port):
    """Return a job that nothing comes to; its reader may be left behind with the port."""
    spec = JobSpec(source=f"udp://127.0.0.1:{port}", targets=(), operations=(), mode="live")
    return create_job(lambda mode: Idle(), spec)


def test_a_fault_while_it_is_closed_is_told_and_nobody_waits_for_ever(monkeypatch):
    def fail(*_):
        raise RuntimeError(f"cannot close rtmp://host/live/{SECRET}")

    monkeypatch.setattr(FanOut, "close", fail)
    job = create_silent(10)
    job.start()
    assert job.stop(10)
    assert "RuntimeError" in str(job.error)
    assert SECRET not in str(job.error)
    assert job.statistics().state == "failed"


def test_who_cannot_watch_is_told_why():
    job = create_job(lambda mode: Idle(), JobSpec("test:", (), (), mode="every_frame"))
    for kind, hint in (("whep", "files only"), ("whip", "whip:")):
        with pytest.raises(JobError, match=hint):
            job.get_peers(kind)


def test_a_stop_while_the_input_is_silent_ends_the_job():
    job = create_silent(9)
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
    # Five frames more: two in each ring, and one in the pipeline's hand.
    source = "test:?size=64x64&frames=11&audio=0"
    spec = JobSpec(source, (str(tmp_path / "out.mkv"),), (), mode="every_frame")
    job = create_job(lambda mode: through, spec)
    job.start()
    assert job.wait(20)
    assert isinstance(job.error, PublishError)
    assert job.statistics().state == "failed"


class SlowPipeline(Pipeline):
    """Needs as long to load as the test wants."""

    def __init__(self, config):
        super().__init__(config, share_sessions(), SystemClock(), create_services())
        self.may_load = threading.Event()

    def prepare(self, token):
        assert self.may_load.wait(20)
        super().prepare(token)


def wait_until(is_true):
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("operations", "is_covered"), [(("detect", "blur"), True), ((), False)])
def test_a_live_stream_starts_covered_while_networks_load(operations, is_covered):
    """C14, C18: loading is told, nothing bare goes out, nothing is labelled as done."""
    config = load_config(settings=("http.enabled=false", "pipeline.loading_patience_ms=50"))
    pipeline = SlowPipeline(config)
    spec = JobSpec("demo:", (), operations, mode="live")
    job = Job("job", spec, config, SystemClock(), lambda mode: pipeline)
    job.start()
    try:
        assert job.wait_started(20)
        wait_until(lambda: job.statistics().frames_out >= 5)
        early = job.statistics()
        assert (early.state == "loading") == is_covered
        assert early.health == ("LOADING" if is_covered else "ONLINE")
        assert (early.counts.get("covered_loading", 0) >= 5) == is_covered
        assert "detect" not in early.steps
        pipeline.may_load.set()
        wait_until(lambda: job.statistics().state == "live")
        if is_covered:
            wait_until(lambda: "blur" in job.statistics().steps)
    finally:
        pipeline.may_load.set()
        assert job.stop(10)


def test_a_network_that_cannot_be_had_ends_a_stream_that_has_begun():
    config = load_config(settings=("http.enabled=false", "pipeline.loading_patience_ms=50"))

    class Failing(SlowPipeline):
        def prepare(self, token):
            assert self.may_load.wait(20)
            raise ModelError("there is no model")

    pipeline = Failing(config)
    spec = JobSpec("demo:", (), ("detect", "blur"), mode="live")
    job = Job("job", spec, config, SystemClock(), lambda mode: pipeline)
    job.start()
    assert job.wait_started(20)
    pipeline.may_load.set()
    assert job.wait(20)
    assert isinstance(job.error, ModelError)


def test_a_step_that_fails_on_every_frame_makes_the_job_degraded(monkeypatch):
    """C21: covered, counted, told; the stream goes on, and is live again with the step."""
    config = load_config(settings=("http.enabled=false",))
    pipeline = Pipeline(config, share_sessions(), SystemClock(), create_services())
    pipeline.prepare(create_token(("detect", "blur"), now_epoch_s=0.0))
    blur, works = pipeline._get_step("blur"), threading.Event()
    run = blur.run

    def fail(state):
        if not works.is_set() and not state.is_trial:
            raise RuntimeError("driver gone")
        run(state)

    monkeypatch.setattr(blur, "run", fail)
    spec = JobSpec("demo:", (), ("detect", "blur"), mode="live")
    job = Job("job", spec, config, SystemClock(), lambda mode: pipeline)
    job.start()
    try:
        wait_until(lambda: job.statistics().state == "degraded")
        assert job.statistics().counts["covered_step_failed"] >= 15
        assert job.statistics().health == "DEGRADED_INFERENCE"
        assert job.statistics().token["log"][-1]["state"] == "blur_failed"
        assert job.error is None
        works.set()
        wait_until(lambda: job.statistics().state == "live")
    finally:
        assert job.stop(10)
