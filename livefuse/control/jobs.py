"""The jobs of this process: made, submitted, started, stopped. For the API and for Python.

draft -> submitted -> running -> stopped | failed -> running (started again) ...
"""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.control.specs import (
    apply_execution,
    choose_source,
    create_spec,
    list_operations,
    read_job_args,
)
from livefuse.errors import (
    ConfigError,
    JobCapacityError,
    JobError,
    JobNotFoundError,
)
from livefuse.redact import redact_text
from livefuse.spec import JobSpec
from livefuse.token import Parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livefuse.config import Config
    from livefuse.control.api.views import JobPhase, Spec
    from livefuse.job import Job
    from livefuse.telemetry import Statistics, Telemetry
    from livefuse.workers.local import Worker

MAX_JOBS: Final = 64
_STOP_S: Final = 10.0


class ManagedJob:
    """A job and what it was asked to do. `spec` and `config` change while it does not run."""

    def __init__(self, job_id: str, config: Config) -> None:
        self.job_id = job_id
        self.config = config
        self.spec: JobSpec | None = None
        self.job: Job | None = None
        self.lock = threading.Lock()

    @property
    def phase(self) -> JobPhase:
        """Where it is in its life."""
        if self.job is None:
            return "draft" if self.spec is None else "submitted"
        if not self.job.wait(0):
            return "running"
        return "failed" if self.job.error is not None else "stopped"

    @property
    def error(self) -> str:
        """The sentence it failed with, without secrets."""
        if self.job is None or self.job.error is None:
            return ""
        return redact_text(str(self.job.error))


class JobManager:
    """Safe from any thread. Submitting and starting read model files: not for an event loop."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._jobs: dict[str, ManagedJob] = {}
        self._lock = threading.Lock()

    # As requirement R45 writes it.

    def create_job(self, job_id: str | None = None) -> str:
        """Make a draft; return its id.

        Raises:
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
        managed.config = apply_execution(args, self.worker.config)
        outputs = [args.output_path] if isinstance(args.output_path, str) else args.output_path
        source = choose_source(args)
        self._submit(
            managed,
            JobSpec(
                source=args.target_path,
                targets=tuple(output for output in outputs if output),
                operations=list_operations(args.processors),
                source_face=self.worker.find_face(source) if source else "",
                parameters=_convert_parameters(args.parameters),
            ),
        )

    def start_job(self, job_id: str, timeout_s: float | None = 30.0) -> None:
        """Start, and wait until it runs; `timeout_s` None: until it runs or fails, 0: not at all.

        Raises:
            JobNotFoundError, JobError: no such job, nothing submitted, or it is running.
            LivefuseError: it could not start.
        """
        job = self.start(job_id)
        if timeout_s != 0:
            job.wait_started(timeout_s)

    def stop_job(self, job_id: str, timeout_s: float = _STOP_S) -> bool:
        """Stop in order; True when all is closed within `timeout_s`.

        Raises:
            JobNotFoundError: there is no such job.
        """
        job = self.get(job_id).job
        return job is None or job.stop(timeout_s)

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

    def create(self, job_id: str | None = None) -> ManagedJob:
        """Make a draft, as `create_job` does."""
        with self._lock:
            name = job_id or uuid.uuid4().hex[:12]
            if name in self._jobs:
                raise JobError(f"there is a job {name!r} already", hint="choose another id")
            if len(self._jobs) >= MAX_JOBS:
                raise JobCapacityError(f"{MAX_JOBS} jobs are here", hint="delete some first")
            managed = self._jobs[name] = ManagedJob(name, self.worker.config)
        return managed

    def get(self, job_id: str) -> ManagedJob:
        """Return the job.

        Raises:
            JobNotFoundError: there is none.
        """
        managed = self._jobs.get(job_id)
        if managed is None:
            raise JobNotFoundError(f"there is no job {job_id[:64]!r}", hint="GET /v1/jobs")
        return managed

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

    def get_shown(self, job_id: str) -> Job:
        """Return the job of that name or, once it is over, the one that runs instead of it.

        Raises:
            JobError: it was never started.
        """
        job = self.get(job_id).job
        if job is None:
            raise JobError(f"the job {job_id} has not been started", hint="start it first")
        others = [m.job for m in self.list_managed() if m.job is not None and not m.job.wait(0)]
        return job if not job.wait(0) or not others else others[-1]

    def wait_idle(self) -> None:
        """Wait until no job runs any more."""
        while running := [m.job for m in self.list_managed() if m.phase == "running"]:
            if (job := running[0]) is not None:
                job.wait()

    def list_managed(self) -> list[ManagedJob]:
        """Return all, the oldest first."""
        with self._lock:
            return list(self._jobs.values())

    def list_measured(self) -> list[tuple[Statistics, Telemetry]]:
        """Return the figures of all jobs that were started, for those who scrape."""
        jobs = [managed.job for managed in self.list_managed() if managed.job is not None]
        return [(job.statistics(), job.telemetry) for job in jobs]

    def submit(self, job_id: str, spec: Spec) -> ManagedJob:
        """Say what the job is to do; everything that can be known is checked.

        Raises:
            JobNotFoundError, JobError: no such job, or it is running.
            LivefuseError: it cannot be done.
        """
        managed = self.get(job_id)
        self._submit(managed, create_spec(spec, managed.config.beautify, self.worker.find_face))
        return managed

    def submit_spec(self, job_id: str, spec: JobSpec) -> ManagedJob:
        """Take a spec that was made here."""
        managed = self.get(job_id)
        self._submit(managed, spec)
        return managed

    def start(self, job_id: str) -> Job:
        """Start; returns at once.

        Raises:
            JobNotFoundError, JobError: no such job, nothing submitted, or it is running.
        """
        managed = self.get(job_id)
        with managed.lock:
            if managed.spec is None:
                raise JobError(f"the job {job_id} has nothing to do yet", hint="submit a spec")
            if managed.phase == "running":
                raise JobError(f"the job {job_id} is running", hint="stop it first")
            if managed.phase != "submitted":
                self.worker.release_job(job_id)
            managed.job = self.worker.add_job(job_id, managed.spec, managed.config)
            managed.job.start()
            return managed.job

    def delete(self, job_id: str) -> None:
        """Stop the job and forget it.

        Raises:
            JobNotFoundError: there is none.
        """
        self.stop_job(job_id)
        with self._lock:
            self._jobs.pop(job_id, None)
        self.worker.release_job(job_id)

    def stop_all(self) -> bool:
        """Stop every job, at the same time; True when all are closed."""
        threads = [
            threading.Thread(target=managed.job.stop, args=(_STOP_S,), daemon=True)
            for managed in self.list_managed()
            if managed.job is not None
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_STOP_S + 1.0)
        return not any(managed.phase == "running" for managed in self.list_managed())

    def _submit(self, managed: ManagedJob, spec: JobSpec) -> None:
        with managed.lock:
            if managed.phase == "running":
                raise JobError(f"the job {managed.job_id} is running", hint="stop it first")
            # Making a job checks all that can be known without opening anything.
            self.worker.release_job(managed.job_id)
            try:
                self.worker.add_job(managed.job_id, spec, managed.config)
            finally:
                self.worker.release_job(managed.job_id)
            managed.spec, managed.job = spec, None


def create_default_manager() -> JobManager:
    """Return a manager with a worker of its own and the default configuration."""
    from livefuse.clock import SystemClock  # noqa: PLC0415 - only for use from Python
    from livefuse.config import load_config  # noqa: PLC0415 - only for use from Python
    from livefuse.workers.local import Worker  # noqa: PLC0415 - loads onnxruntime

    return JobManager(Worker(load_config(), SystemClock()))


def _convert_parameters(values: Mapping[str, Any]) -> Parameters:
    try:
        return msgspec.convert(values, Parameters)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"job_args parameters: {error}", hint="see  livefuse token schema"
        ) from None
