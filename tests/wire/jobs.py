"""A whole job in this process, for the tests of its outputs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.job.spec import JobSpec
from livefuse.workers.local import Worker
from tests.wire.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.job.job import Job

SOURCE = "test:?size=320x180&fps=30"
QUICK = (
    "rtmp.stall_ms=800",
    "rtmp.connect_timeout_ms=3000",
    "rtmp.backoff_min_ms=100",
    "rtmp.backoff_max_ms=400",
    "encode.bitrate_kbps=400",
)


@contextlib.contextmanager
def running(*targets: str, settings: tuple[str, ...] = (), source: str = SOURCE) -> Iterator[Job]:
    worker = Worker(load_config(None, (*QUICK, *settings)), SystemClock())
    job = worker.add_job("main", JobSpec(source, targets, ()))
    job.start()
    try:
        assert job.wait_started(30)
        yield job
    finally:
        assert job.stop(20)


def get_output(job: Job, which: int) -> dict[str, object]:
    return job.statistics().outputs[which]


def wait_state(job: Job, which: int, state: str, timeout_s: float = 15.0) -> dict[str, object]:
    wait_until(lambda: get_output(job, which)["state"] == state, timeout_s, state)
    return get_output(job, which)
