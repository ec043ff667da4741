"""A worker in this process: its jobs and what they share (model sessions, clock, configuration)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from livefuse.errors import JobError
from livefuse.job import Job
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.safety.cover import cover_frame, draw_slate
from livefuse.safety.faces import FaceStore
from livefuse.workers.face_reader import FaceReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.frame import Frame
    from livefuse.ring import RingMode
    from livefuse.spec import JobSpec


# A job that hides faces is never passed: with `pass` it is blurred.
LOADING_COVERS: Final[dict[str, Callable[[Frame], None]]] = {
    "blur": cover_frame,
    "slate": draw_slate,
    "pass": cover_frame,
}


class Worker:
    """Runs jobs. Its methods may be called from any thread; `add_job` reads model files."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        self._sessions = SessionCache(config.models)
        self._reader = FaceReader(config, self._sessions)
        self.faces = FaceStore(config.safety, clock, embedder=self._reader.embedder)

    def add_job(self, job_id: str, spec: JobSpec) -> Job:
        """Check `spec` and return its job, not yet started.

        Raises:
            LivefuseError: the spec cannot be used; nothing was opened.
        """
        if job_id in self.jobs:
            raise JobError(f"there is a job {job_id!r} already", hint="choose another id")

        if spec.operations:
            self._sessions.check_device()
        services = Services(
            cover=cover_frame,
            cover_loading=LOADING_COVERS[self.config.pipeline.while_loading],
            load_source=self.faces.load_source,
            list_gallery=self.faces.list_gallery,
            is_allowed=self.faces.is_allowed,
        )

        def create_pipeline(mode: RingMode) -> Pipeline:
            return Pipeline(
                self.config,
                self._sessions,
                self.clock,
                services,
                every_frame=mode == "every_frame",
            )

        job = Job(job_id, spec, self.config, self.clock, create_pipeline)
        self.jobs[job_id] = job
        return job

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Stop all jobs; True when all are closed within `timeout_s` each."""
        closed = [job.stop(timeout_s) for job in list(self.jobs.values())]
        return all(closed)
