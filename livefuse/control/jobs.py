"""The jobs of this process: made, submitted, started, stopped. For the API and for Python.

draft -> submitted -> running -> stopped | failed -> running (started again) ...
"""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from typing import TYPE_CHECKING, Any, Final

from livefuse.control.job_audit import JobAudit
from livefuse.control.managed import ManagedJob, check_target, stop_together
from livefuse.control.specs import apply_execution, create_spec, create_spec_by_args, read_job_args
from livefuse.errors import AuditError, ConfigError, JobCapacityError, JobError, JobNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livefuse.control.api.views import NewJob, Spec
    from livefuse.job.job import Job
    from livefuse.job.spec import JobSpec
    from livefuse.publish.base import OutputStatus
    from livefuse.telemetry import Statistics, Telemetry
    from livefuse.workers.local import Worker

MAX_JOBS: Final = 64
_STOP_S: Final = 8.0
_LOOK_S: Final = 0.5
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class JobManager:
    """Safe from any thread. Submitting and starting read model files: not for an event loop.

    With `outlives_script` the process goes on, once its script has come to the end, until the jobs
    that `start_job` started are over.
    """

    def __init__(self, worker: Worker, *, outlives_script: bool = False) -> None:
        self.worker = worker
        self.audit = JobAudit(worker)
        self._outlives_script = outlives_script
        self._jobs: dict[str, ManagedJob] = {}
        self._is_closed = False
        self._closing = threading.Event()
        self._lock = threading.Lock()

    # As requirement R45 writes it.

    def create_job(self, job_id: str | None = None) -> str:
        """Make a draft; return its id.

        Raises:
            ConfigError: `job_id` is more than letters, digits, _ and -.
            JobError: there is one of that name.
            JobCapacityError: there are too many.
        """
        return self.create(job_id).job_id

    def submit_job(self, job_id: str, job_args: Mapping[str, Any]) -> None:
        """Say what the job is to do, in the words of `specs.JobArgs`; everything is checked.

        Raises:
            JobNotFoundError, JobError: no such job, or it is running.
            LivefuseError: it cannot be done.
        """
        args = read_job_args(job_args)
        managed = self.get(job_id)
        spec = create_spec_by_args(args, self.audit.tell_unknown(job_id, self.worker.find_face))
        managed.submit(spec, apply_execution(args, self.worker.config))

    def start_job(self, job_id: str, timeout_s: float | None = 30.0) -> None:
        """Start, and wait until it runs; `timeout_s` None: until it runs or fails, 0: not at all.

        Raises:
            JobNotFoundError, JobError: no such job, nothing submitted, or it is running.
            LivefuseError: it could not start.
        """
        job = self.start(job_id)
        if self._outlives_script:
            # All other threads are daemons: without this one the last line would end the stream.
            threading.Thread(target=self.audit.watch.outlive, args=(job,)).start()
        if timeout_s != 0:
            job.wait_started(timeout_s)

    def stop_job(self, job_id: str, timeout_s: float = _STOP_S) -> bool:
        """Stop in order; True when all is closed within `timeout_s`.

        Raises:
            JobNotFoundError: there is no such job.
        """
        return self.get(job_id).stop(timeout_s)

    def wait_job(self, job_id: str, timeout_s: float | None = None) -> bool:
        """Wait until the job is over; False when it is not within `timeout_s`.

        Raises:
            JobNotFoundError: there is no such job.
        """
        job = self.get(job_id).job
        return job is None or job.wait(timeout_s)

    def get_status(self, job_id: str) -> Statistics:
        """Return the figures of now, or of the end.

        Raises:
            JobNotFoundError, JobError: no such job, or it was never started.
        """
        job = self.get(job_id).job
        if job is None:
            raise JobError(f"the job {job_id} has not been started", hint="start it first")
        return job.statistics()

    def list_jobs(self) -> list[str]:
        """Return the ids, the oldest first."""
        return [managed.job_id for managed in self.list_managed()]

    # For the API.

    def create(self, job_id: str | None = None, owner: str = "") -> ManagedJob:
        """Make a draft, as `create_job` does, for the key `owner`."""
        name = job_id or uuid.uuid4().hex[:12]
        if not _ID.fullmatch(name):
            raise ConfigError(
                f"{name[:64]!r} is no job id", hint="use letters, digits, _ and -, 64 at most"
            )
        with self._lock:
            if name in self._jobs:
                raise JobError(f"there is a job {name!r} already", hint="choose another id")
            if len(self._jobs) >= MAX_JOBS:
                raise JobCapacityError(f"{MAX_JOBS} jobs are here", hint="delete some first")
            self._check_open()
            managed = self._jobs[name] = ManagedJob(name, self.worker, self.audit, owner)
        try:
            self.audit.note_created(name, owner)
        except AuditError:
            self._jobs.pop(name, None)
            raise
        return managed

    def create_by_wish(self, wish: NewJob, owner: str = "") -> ManagedJob:
        """Make a job, submit and start it, as far as is wished; or nothing is left of it.

        It belongs to the key `owner`.

        Raises:
            LivefuseError: it cannot be.
        """
        managed = self.create(wish.id, owner)
        try:
            if wish.spec is not None:
                self.submit(managed.job_id, wish.spec)
            if wish.start:
                self.start(managed.job_id)
        except BaseException:
            with contextlib.suppress(JobNotFoundError):
                self.delete(managed.job_id)
            raise
        return managed

    def get(self, job_id: str) -> ManagedJob:
        """Return the job.

        Raises:
            JobNotFoundError: there is none.
        """
        managed = self._jobs.get(job_id)
        if managed is None or managed.is_deleted:
            raise JobNotFoundError(f"there is no job {job_id[:64]!r}", hint="GET /v1/jobs")
        return managed

    def find_owner(self, job_id: str) -> str | None:
        """Return the key that made the job, None when there is no such job."""
        managed = self._jobs.get(job_id)
        return None if managed is None else managed.owner

    def get_running(self, job_id: str) -> Job:
        """Return the job that runs.

        Raises:
            JobNotFoundError: there is none.
            JobError: it does not run.
        """
        job = self.get(job_id).job
        if job is None or job.wait(0):
            raise JobError(f"the job {job_id} is not running", hint="start it first")
        return job

    def get_shown(self, job: Job) -> Job:
        """Return `job` or, once it is over, the newest of those that run instead of it."""
        others = [m.job for m in self.list_managed() if m.job is not None and not m.job.wait(0)]
        return job if not job.wait(0) or not others else others[-1]

    def wait_idle(self) -> None:
        """Wait until all jobs have come to their end; one that was put aside may go on."""
        while jobs := [m for m in self.list_managed() if m.phase == "running" or m.is_put_aside]:
            running = [m.job for m in jobs if m.job is not None and m.phase == "running"]
            if running:
                running[0].wait()
            else:
                self._closing.wait(_LOOK_S)
            if self._is_closed:
                return

    def list_managed(self) -> list[ManagedJob]:
        """Return all, the oldest first."""
        with self._lock:
            return [managed for managed in self._jobs.values() if not managed.is_deleted]

    def list_measured(self) -> list[tuple[Statistics, Telemetry]]:
        """Return the figures of all jobs that were started, for those who scrape."""
        jobs = [managed.job for managed in self.list_managed() if managed.job is not None]
        return [(job.statistics(), job.telemetry) for job in jobs]

    def submit(self, job_id: str, spec: Spec) -> ManagedJob:
        """Say what the job is to do; everything that can be known is checked.

        Raises:
            JobNotFoundError, JobError: no such job, or it is running.
            RefusedError: its look names a public figure.
            LivefuseError: it cannot be done.
        """
        managed = self.get(job_id)
        self.worker.faces.refusals.check_text(spec.look, "the look", job=job_id)
        find = self.audit.tell_unknown(job_id, self.worker.resolve_face)
        access = self.audit.open_access(job_id, managed.config)
        wanted = create_spec(spec, managed.config, find, access)
        managed.submit(wanted, apply_execution(spec, self.worker.config))
        return managed

    def submit_spec(self, job_id: str, spec: JobSpec) -> ManagedJob:
        """Take a spec that was made here."""
        managed = self.get(job_id)
        managed.submit(spec)
        return managed

    def start(self, job_id: str) -> Job:
        """Start; returns at once.

        Raises:
            JobNotFoundError, JobError: no such job, nothing submitted, or it is running.
            JobCapacityError: livefuse is ending.
            RefusedError: by now it would read or send where jobs may not.
        """
        managed = self.get(job_id)
        if managed.spec is not None:
            access = self.audit.open_access(job_id, managed.config)
            access.check_spec(managed.spec.source, managed.spec.targets)
        job = managed.start()
        if self._is_closed:  # said meanwhile: whoever closes may have looked before it ran
            managed.stop(_STOP_S)
        self._check_open()
        return job

    def add_output(self, job: Job, url: str) -> OutputStatus:
        """Send `job` to `url` too, a file within record.folder; return its state.

        Raises:
            RefusedError: the file would lie elsewhere, or jobs may not send there.
            JobError: that job, or another one, writes that file already.
            LivefuseError: as `Job.add_output`.
        """
        access = self.audit.open_access(job.job_id, self.worker.config)
        target = access.place_target(url.strip(), self.worker.config.record)
        check_target(target, job.spec.source, self.list_managed())
        with self.audit.note_output(job.job_id, target):
            return job.add_output(target)

    def delete(self, job_id: str) -> None:
        """Stop the job and forget it.

        Raises:
            JobNotFoundError: there is none.
        """
        managed = self.get(job_id)
        managed.delete(_STOP_S)
        with self._lock:
            self._jobs.pop(job_id, None)

    delete_job = delete  # as programs call it

    def stop_all(self) -> bool:
        """Stop every job, at the same time; True when all are closed."""
        return stop_together(list(self._jobs.values()), _STOP_S)

    def close(self) -> bool:
        """Stop every job and let none begin any more; True when all are closed."""
        self._is_closed = True
        self._closing.set()
        is_closed = self.stop_all()
        self.audit.close()
        return is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise JobCapacityError("livefuse is ending", hint="start it again")
