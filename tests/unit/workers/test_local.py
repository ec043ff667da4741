"""A worker keeps the figures of the last jobs that ended, not of all."""

from __future__ import annotations

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.job.spec import JobSpec
from livefuse.workers.local import Worker


class EndedJob:
    def wait(self, timeout_s=None):
        return True


class RunningJob:
    def wait(self, timeout_s=None):
        return False


def test_jobs_that_ended_are_let_go_but_for_the_last_sixteen():
    worker = Worker(load_config(settings=("http.enabled=false",)), SystemClock())
    worker.jobs["live"] = RunningJob()  # type: ignore[assignment] # only asked whether it has ended
    for number in range(40):
        worker.jobs[f"ended-{number}"] = EndedJob()  # type: ignore[assignment] # as above
    worker.add_job("new", JobSpec("test:", (), (), mode="live"))
    assert list(worker.jobs) == ["live", *(f"ended-{n}" for n in range(24, 40)), "new"]
