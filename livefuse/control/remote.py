"""`livefuse.job_manager` with LIVEFUSE_URL set: the same methods, the jobs run in the daemon there.

LIVEFUSE_URL is the address that `livefuse serve` or `livefuse run` prints, its `?key=` or
LIVEFUSE_KEY the key. What fails raises what would be raised in this process (remote_errors.py).

What is otherwise: a relative `output_path` lies in the daemon's record.folder, a source picture is
found there by its digest, so it is enrolled there and never sent, and the script may end before its
jobs do.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from livefuse.control.address import parse_daemon_url
from livefuse.control.api.views import JobList, JobView
from livefuse.control.http_client import HttpClient, Query
from livefuse.control.remote_errors import create_error, create_job_error
from livefuse.control.specs import choose_source, list_operations, read_job_args
from livefuse.errors import DaemonError, JobError
from livefuse.safety.picture import MAX_PICTURE_BYTES
from livefuse.telemetry import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from livefuse.control.http_client import Answer
    from livefuse.control.specs import JobArgs

T = TypeVar("T")
_ASK_S: Final = 30.0
_TRIES: Final = 3
_PAUSE_S: Final = 0.3
_LOOK_S: Final = 0.25
_STOP_S: Final = 8.0
_GRACE_S: Final = 5.0  # for the answer itself, beside what is waited for
_OVER: Final = frozenset({"draft", "submitted", "stopped", "failed"})
_RUNS: Final = frozenset({"running", "degraded"})
_UNSETTLED: Final = frozenset({"connecting", "stopping", "stopped", "failed"})
_AWAY: Final = frozenset({502, 504})  # a proxy whose daemon is away
_BAD: Final = 400


def connect_manager(url: str, key: str = "") -> RemoteJobManager:
    """Return the manager of the daemon at `url`; `key` goes before the one in the URL.

    Nothing is contacted yet.

    Raises:
        ConfigError: `url` is no address.
    """
    address = parse_daemon_url(url)
    return RemoteJobManager(HttpClient(address), key or address.key)


class RemoteJobManager:
    """Jobs of a daemon. Safe from any thread. Each method may raise DaemonError and its children.

    What was not answered is asked again, up to three times: the same request has the same
    Idempotency-Key, so nothing is done twice.
    """

    def __init__(self, client: HttpClient, key: str) -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def __repr__(self) -> str:
        """Name the daemon, not the key."""
        return f"<job manager of {self._client.address}>"

    def create_job(self, job_id: str | None = None) -> str:
        """Make a draft; return its id.

        Raises:
            ConfigError: `job_id` is more than letters, digits, _ and -.
            JobError: there is one of that name.
            JobCapacityError: there are too many.
        """
        # Chosen here: asked twice because an answer was lost, it is still one job.
        wish = {"id": uuid.uuid4().hex[:12] if job_id is None else job_id}
        return self._ask_for(JobView, "POST", "/v1/jobs", wish).id

    def submit_job(self, job_id: str, job_args: Mapping[str, Any]) -> None:
        """Say what the job is to do, in the words of `specs.JobArgs`; everything is checked.

        Raises:
            JobNotFoundError, JobError: no such job, or it is running.
            LivefuseError: it cannot be done.
        """
        spec = _create_spec(read_job_args(job_args))
        self._ask("PUT", f"{_get_path(job_id)}/spec", spec)

    def start_job(self, job_id: str, timeout_s: float | None = 30.0) -> None:
        """Start, and wait until it runs; `timeout_s` None: until it runs or fails, 0: not at all.

        Raises:
            JobNotFoundError, JobError: no such job, nothing submitted, or it is running.
            LivefuseError: it could not start.
        """
        self._ask("POST", f"{_get_path(job_id)}/start")
        if timeout_s == 0:
            return
        end_s = _add(timeout_s)
        while not _has_started(job := self._show(job_id)):
            if time.monotonic() >= end_s:
                return
            time.sleep(_LOOK_S)
        if job.state == "failed":
            raise create_job_error(job)

    def stop_job(self, job_id: str, timeout_s: float = _STOP_S) -> bool:
        """Stop in order; True when all is closed within `timeout_s`.

        Raises:
            JobNotFoundError: there is no such job.
        """
        path = f"{_get_path(job_id)}/stop"
        job = self._ask_for(JobView, "POST", path, patience_s=timeout_s + _GRACE_S)
        return job.state in _OVER or self.wait_job(job_id, timeout_s)

    def delete_job(self, job_id: str) -> None:
        """Stop the job and forget it.

        Raises:
            JobNotFoundError: there is no such job.
        """
        self._ask("DELETE", _get_path(job_id))

    def wait_job(self, job_id: str, timeout_s: float | None = None) -> bool:
        """Wait until the job is over; False when it is not within `timeout_s`.

        Raises:
            JobNotFoundError: there is no such job.
        """
        end_s = _add(timeout_s)
        while self._show(job_id).state not in _OVER:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(_LOOK_S, left_s))
        return True

    def get_status(self, job_id: str) -> Statistics:
        """Return the figures of now, or of the end.

        Raises:
            JobNotFoundError, JobError: no such job, or it was never started.
        """
        return self._ask_for(Statistics, "GET", f"{_get_path(job_id)}/status")

    def list_jobs(self) -> list[str]:
        """Return the ids, the oldest first."""
        return [job.id for job in self._ask_for(JobList, "GET", "/v1/jobs").jobs]

    def close(self) -> None:
        """Let go of the connections; the jobs go on."""
        self._client.close()

    def _show(self, job_id: str) -> JobView:
        return self._ask_for(JobView, "GET", _get_path(job_id))

    def _ask_for(
        self,
        kind: type[T],
        method: str,
        path: str,
        value: Any = None,  # noqa: ANN401 - JSON
        patience_s: float = _ASK_S,
    ) -> T:
        answer = self._ask(method, path, value, patience_s)
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise DaemonError(
                f"{self._client.address} answers in unknown words",
                hint="is it a livefuse of this version?",
            ) from None

    def _ask(
        self,
        method: str,
        path: str,
        value: Any = None,  # noqa: ANN401 - JSON
        patience_s: float = _ASK_S,
    ) -> Answer:
        headers = self._headers.copy()
        if method == "POST":
            headers["Idempotency-Key"] = uuid.uuid4().hex
        body = None
        if value is not None:
            body = msgspec.json.encode(value)
            headers["Content-Type"] = "application/json"
        answer = self._try(Query(method, path, headers, body), patience_s)
        if answer.status >= _BAD:
            raise create_error(answer, self._client.address)
        return answer

    def _try(self, query: Query, patience_s: float) -> Answer:
        """Ask until there is an answer, with pauses that grow; the last failure is told."""
        for attempt in range(1, _TRIES + 1):
            try:
                answer = self._client.ask(query, patience_s)
            except DaemonError:
                if attempt == _TRIES:
                    raise
            else:
                if answer.status not in _AWAY or attempt == _TRIES or _is_own(answer):
                    return answer
            # Many programs that lost the same daemon do not come back in step.
            time.sleep(_PAUSE_S * attempt * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        raise AssertionError  # the last try returns or raises


def _create_spec(args: JobArgs) -> dict[str, Any]:
    """Return job_args as a spec of the API. Names are checked here, the rest there.

    Raises:
        TokenError: a processor is unknown.
        RefusedError: there are several source pictures.
    """
    outputs = (args.output_path,) if isinstance(args.output_path, str) else args.output_path
    spec: dict[str, Any] = {
        "source": _place_source(args.target_path),
        "targets": [output for output in outputs if output],
        "operations": list_operations(args.processors),
        "source_face": _name_face(choose_source(args)),
        "parameters": args.parameters,
        "execution_providers": args.execution_providers,
    }
    if args.execution_threads is not None:
        spec["execution_threads"] = args.execution_threads
    return spec


def _place_source(target: str) -> str:
    """Return what is read; a file by its whole path: the daemon stands in another folder."""
    path = Path(target)
    try:
        return str(path.resolve()) if path.is_file() else target
    except (OSError, ValueError):
        return target


def _name_face(source: str) -> str:
    """Return the face by which the daemon knows it: a picture's file by its digest."""
    path = Path(source)
    try:
        if source and path.is_file() and path.stat().st_size <= MAX_PICTURE_BYTES:
            return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    except (OSError, ValueError):
        pass
    return source


def _has_started(job: JobView) -> bool:
    """Say whether a job runs, or is over: then there is nothing to wait for."""
    if job.state not in _RUNS:
        return job.state in _OVER
    # A job that does not answer, or is about to end: what comes of it is told by the next look.
    return job.statistics is not None and job.statistics.state not in _UNSETTLED


def _is_own(answer: Answer) -> bool:
    """Say whether livefuse itself said so, and not something in between."""
    return "problem+json" in answer.headers.get("content-type", "")


def _get_path(job_id: str) -> str:
    if not job_id:
        raise JobError("an empty job id", hint="use what create_job returned")
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _add(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else time.monotonic() + timeout_s


def find_manager_by_environment() -> RemoteJobManager | None:
    """Return the manager of LIVEFUSE_URL with LIVEFUSE_KEY; None where it is not set.

    Raises:
        ConfigError: it is no address.
    """
    url = os.environ.get("LIVEFUSE_URL", "").strip()
    return connect_manager(url, os.environ.get("LIVEFUSE_KEY", "").strip()) if url else None
