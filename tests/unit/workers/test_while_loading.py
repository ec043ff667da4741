"""What is shown of a live stream while networks load, for each way that can be asked for (C18)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.job.spec import JobSpec
from livefuse.pipeline.steps import Pipeline
from livefuse.workers.local import Worker

if TYPE_CHECKING:
    from livefuse.job.job import Job

SLATE_LUMA = 55  # 64 of 16 to 235, as a screen shows it
HIDING, OPEN = ("detect", "blur"), ("detect", "align", "beautify")


def take_luma(job: Job) -> np.ndarray:
    data = job.take_snapshot(10.0)
    assert data is not None
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    return cv2.cvtColor(picture, cv2.COLOR_BGR2YUV)[:, :, 0].astype(float)


def measure_detail(luma: np.ndarray) -> float:
    return float(np.abs(np.diff(luma, axis=1)).mean())


@pytest.fixture
def may_load(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Networks load once this is set."""
    event, prepare = threading.Event(), Pipeline.prepare

    def wait(self: Pipeline, token: object) -> None:
        assert event.wait(30)
        prepare(self, token)  # type: ignore[arg-type] # as it was given

    monkeypatch.setattr(Pipeline, "prepare", wait)
    return event


@pytest.mark.parametrize("way", ["slate", "blur", "pass"])
@pytest.mark.parametrize("operations", [HIDING, OPEN], ids=["hides", "beautifies"])
def test_it_is_what_was_asked_for_never_black_and_never_bare(may_load, way, operations) -> None:
    """(C18) `pass` is for what hides nobody: a job that hides faces is blurred instead."""
    settings = (
        "http.enabled=false", "pipeline.loading_patience_ms=50", f"pipeline.while_loading={way}"
    )  # fmt: skip
    worker = Worker(load_config(settings=settings), SystemClock())
    spec = JobSpec("demo:?size=320x180&audio=0", (), operations, mode="live")
    job = worker.add_job("job", spec)
    job.start()
    try:
        assert job.wait_started(20)
        while job.statistics().frames_out < 3:
            assert not job.wait(0.02)
        early = take_luma(job)
        assert job.statistics().health == "LOADING"
        assert "detect" not in job.statistics().steps
        may_load.set()
        while job.statistics().state != "live" or not job.statistics().steps.get("detect"):
            assert not job.wait(0.05)
        later = take_luma(job)
    finally:
        may_load.set()
        assert job.stop(10)
    assert early.mean() > 30, "never black"
    detail = measure_detail(later)
    if way == "slate":
        assert np.abs(early - SLATE_LUMA).max() <= 3
    elif way == "pass" and operations == OPEN:
        assert measure_detail(early) > 0.8 * detail
    else:
        assert measure_detail(early) < 0.35 * detail
        assert early.std() > 5, "one sees that there is a picture"
