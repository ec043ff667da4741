"""One job of the manager: what it was asked to do, and its life, one change after the other."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING

from livefuse.control.paths import check_distinct, is_same_file
from livefuse.errors import JobError, JobNotFoundError, LivefuseError
from livefuse.publish import find_file_path
from livefuse.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from livefuse.config import Config
    from livefuse.control.api.views import JobPhase
    from livefuse.control.job_audit import JobAudit
    from livefuse.job.job import Job
    from livefuse.job.spec import JobSpec
    from livefuse.workers.local import Worker


class ManagedJob:
    """Safe from any thread. `spec` and `config` change only while it does not run."""

    def __init__(self, job_id: str, worker: Worker, audit: JobAudit, owner: str = "") -> None:
        self.job_id = job_id
        self.owner = owner
        """The key that made it over the API; empty: whoever started livefuse."""
        self.config: Config = worker.config
        self.spec: JobSpec | None = None
        self.job: Job | None = None
        self.is_deleted = False
        """Nothing begins any more; what runs is coming to its end."""
        self.changing = threading.Lock()
        """Held while its token is being changed: one change after the other, each logged first."""
        self._worker = worker
        self._audit = audit
        self._is_stopping = False
        self._lock = threading.Lock()

    @property
    def phase(self) -> JobPhase:
        """Where it is in its life."""
        job = self.job
        if job is None:
            return "draft" if self.spec is None else "submitted"
        if not job.wait(0):
            return "running"
        return "failed" if job.error is not None else "stopped"

    @property
    def is_put_aside(self) -> bool:
        """Whether somebody stopped it, who may start it again."""
        return self._is_stopping and not self.is_deleted and self.phase == "stopped"

    @property
    def error(self) -> str:
        """The sentence it failed with, without secrets."""
        job = self.job
        return "" if job is None or job.error is None else redact_text(str(job.error))

    @property
    def error_type(self) -> str:
        """The name of the error it failed with."""
        job = self.job
        return "" if job is None or job.error is None else type(job.error).__name__

    def submit(self, spec: JobSpec, config: Config | None = None) -> None:
        """Take what is to be done, and with which settings, once it has been checked.

        Raises:
            JobNotFoundError, JobError: it has been deleted, or is running.
            AuditError: it cannot be logged.
            LivefuseError: it cannot be done.
        """
        config = config or self.config
        with self._lock:
            self._check_idle()
            # Making a job checks all that can be known without opening anything.
            self._worker.release_job(self.job_id)
            try:
                with self._audit.note_refusal(self.job_id, "submit"):
                    self._worker.add_job(self.job_id, spec, config)
            finally:
                self._worker.release_job(self.job_id)
            self._audit.note_submitted(self.job_id, spec)
            self.config, self.spec, self.job = config, spec, None

    def start(self) -> Job:
        """Start; returns at once.

        Raises:
            JobNotFoundError, JobError: it has been deleted, has nothing to do, or is running.
            ConsentError: its face may not be shown.
            AuditError: it cannot be logged.
        """
        with self._lock:
            self._check_idle()
            if self.spec is None:
                raise JobError(f"the job {self.job_id} has nothing to do yet", hint="submit a spec")
            self._worker.release_job(self.job_id)
            with self._audit.note_refusal(self.job_id, "start"):
                job = self._worker.add_job(self.job_id, self.spec, self.config)
            try:
                self._audit.note_started(job)
            except LivefuseError:
                self._worker.release_job(self.job_id)
                raise
            self._is_stopping = False
            self.job = job
            job.start()
            return job

    def stop(self, timeout_s: float) -> bool:
        """Stop in order; True when all is closed within `timeout_s`."""
        with self._lock:  # a start that is on its way comes first
            self._is_stopping = True
            job = self.job
        if job is None or job.wait(0):
            return True
        self._audit.note_stopping(self.job_id)
        is_closed = job.stop(timeout_s)
        self._audit.watch.look()
        return is_closed

    def delete(self, timeout_s: float) -> None:
        """Stop for good and give back what it holds.

        Raises:
            JobNotFoundError: it has been deleted already.
        """
        with self._lock:
            self._check_there()
            self.is_deleted = True
        self.stop(timeout_s)
        self._worker.release_job(self.job_id)
        self._audit.note_deleted(self.job_id)

    def _check_there(self) -> None:
        if self.is_deleted:
            raise JobNotFoundError(f"there is no job {self.job_id!r}", hint="GET /v1/jobs")

    def _check_idle(self) -> None:
        self._check_there()
        if self.phase == "running":
            if self._is_stopping:
                raise JobError(
                    f"the job {self.job_id} is being stopped", hint="try again in a moment"
                )
            raise JobError(f"the job {self.job_id} is running", hint="stop it first")


def stop_together(every: Iterable[ManagedJob], timeout_s: float) -> bool:
    """Stop jobs, at the same time, in the name of whoever acts now; True when all are closed."""
    jobs = list(every)
    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(managed.stop, timeout_s), daemon=True
        )
        for managed in jobs
        if managed.job is not None
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s + 1.0)
    return not any(managed.phase == "running" for managed in jobs)


def check_target(url: str, source: str, jobs: Iterable[ManagedJob]) -> None:
    """Refuse a target that is the source, or that one of `jobs` writes.

    Raises:
        ConfigError: it is what is read.
        JobError: a job writes it.
    """
    check_distinct(source, [url], None, also_read=())
    path = find_file_path(url)
    if path is None:
        return
    for managed in jobs:
        if any(is_same_file(path, other) for other in _list_written(managed)):
            raise JobError(
                f"the job {managed.job_id} writes {path.name} already", hint="choose another name"
            )


def _list_written(managed: ManagedJob) -> list[Path]:
    """Return the files that a running job writes now."""
    job = managed.job
    if job is None or job.wait(0):
        return []
    urls = [status.url for status in job.list_outputs() if status.kind == "file"]
    return [path for path in map(find_file_path, urls) if path is not None]
