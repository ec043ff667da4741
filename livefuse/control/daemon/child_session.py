"""What a worker of the daemon does: its jobs, its API on a unix socket, its beats."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import uvloop
from aiohttp import web

from livefuse.clock import SystemClock
from livefuse.control.api.forwarded import Forwarded
from livefuse.control.api.server import ApiServer, create_application
from livefuse.control.background import call_in_thread
from livefuse.control.daemon.checks import get_checked_job
from livefuse.control.daemon.child_guests import add_guests_route, list_guests
from livefuse.control.daemon.child_settings import add_settings_route
from livefuse.control.job_audit import JobAudit
from livefuse.control.jobs import JobManager
from livefuse.errors import LivefuseError
from livefuse.publish.fanout import name_outputs
from livefuse.redact import redact_text
from livefuse.telemetry import set_up_logging
from livefuse.token import create_token
from livefuse.workers.local import Worker
from livefuse.workers.process import Beat, JobBeat, WorkerOrder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from livefuse.control.api.figures import Figures
    from livefuse.control.managed import ManagedJob
    from livefuse.job.health import Condition
    from livefuse.job.job import Job
    from livefuse.job.spec import JobSpec

BEAT_S: Final = 0.5
_LINGER_S: Final = 2.0
_PRIVATE: Final = 0o600
_USUAL: Final = ("detect", "blur")
_TRIAL_PX: Final = (640, 360)


def run_worker(order: WorkerOrder, beats: BinaryIO) -> None:
    """Serve until the process is ended."""
    set_up_logging(order.config.log)
    name_outputs(f"{order.epoch}-{order.number}-")
    # As for a run of one job (session.py).
    sys.setswitchinterval(0.0002)
    gc.freeze()
    uvloop.run(_serve(order, beats))


class RunningAudit(JobAudit):
    """What jobs go through while they run here; that they are made and go is the daemon's tale.

    A job that is made only to see whether it could be has the name of the one that it is for.
    """

    def note_created(self, job_id: str, owner: str) -> None:
        """Leave it to the daemon."""

    def note_submitted(self, job_id: str, spec: JobSpec) -> None:
        """Leave it to the daemon."""

    def note_deleted(self, job_id: str) -> None:  # noqa: ARG002 - it looks at all
        """Write what has ended; the rest is left to the daemon."""
        self.watch.look()

    @contextlib.contextmanager
    def note_refusal(self, job_id: str, what: str) -> Iterator[None]:
        """Log a refusal, as the job's that was meant."""
        with super().note_refusal(get_checked_job(job_id), what):
            yield


class WorkerServer(ApiServer):
    """The same API on a unix socket, for the one that gave the order."""

    def __init__(self, order: WorkerOrder, manager: JobManager) -> None:
        super().__init__(order.config, manager, "", Forwarded(order.secret).find_caller)
        self._path = order.socket

    @property
    def figures(self) -> Figures:
        """Where the figures of jobs are asked for."""
        return self._api.figures

    async def start(self) -> None:
        """Listen."""
        app = create_application(self._api, "localhost", self._find_caller, self._doorway)
        add_settings_route(app, self._api, self._doorway.perimeter)
        add_guests_route(app, self._api.manager)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            lingering_time=_LINGER_S,
            handler_cancellation=True,
            shutdown_timeout=1.0,
        )
        await self._runner.setup()
        await web.UnixSite(self._runner, self._path).start()
        Path(self._path).chmod(_PRIVATE)  # noqa: ASYNC240 - a folder of our own, in memory mostly


async def _serve(order: WorkerOrder, beats: BinaryIO) -> None:
    worker = Worker(order.config, SystemClock())
    manager = JobManager(worker)
    manager.audit = RunningAudit(worker)
    server = WorkerServer(order, manager)
    await server.start()
    if order.config.daemon.warm_up:
        call_in_thread("warm-up", lambda: _warm_up(worker))
    while True:
        await _tell(server.figures, manager, beats)
        await asyncio.sleep(BEAT_S)


def _warm_up(worker: Worker) -> None:
    """Load what most jobs need; a tenth of a second, 60 MB. What cannot be had is told by jobs."""
    with contextlib.suppress(LivefuseError):
        pipeline = worker.create_pipeline("live")
        token = create_token(_USUAL, now_epoch_s=worker.clock.epoch_s())
        pipeline.prepare(token)
        pipeline.warm_up(*_TRIAL_PX, token)


async def _tell(asked: Figures, manager: JobManager, beats: BinaryIO) -> None:
    jobs = manager.list_managed()
    conditions = await asyncio.gather(*(_judge(asked, managed.job) for managed in jobs))
    beat = Beat(
        jobs=[_describe(*each) for each in zip(jobs, conditions, strict=True)],
        guests=list_guests(manager),
    )
    data = msgspec.json.encode(beat) + b"\n"
    try:
        # A few hundred bytes into a pipe that is read at once.
        os.write(beats.fileno(), data)
    except OSError:
        os._exit(1)


async def _judge(asked: Figures, job: Job | None) -> Condition | None:
    """Return how a job is, None when there is none or it does not answer."""
    if job is None:
        return None
    return await asked.ask(("health", job), lambda: job.report.judge(job.state, job.error))


def _describe(managed: ManagedJob, condition: Condition | None) -> JobBeat:
    beat = partial(
        JobBeat,
        id=managed.job_id,
        phase=managed.phase,
        error=managed.error,
        error_type=managed.error_type,
    )
    if condition is None:
        return beat()
    return beat(health=condition.health, reason=redact_text(condition.reason))
