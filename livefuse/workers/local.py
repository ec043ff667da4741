"""A worker in this process: its jobs and what they share (model sessions, clock, configuration)."""

from __future__ import annotations

import contextlib
import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.errors import JobError
from livefuse.job.job import Job
from livefuse.pipeline.effects.avatar import AVATARS, check_avatar, is_avatar
from livefuse.pipeline.state import Services
from livefuse.pipeline.steps import Pipeline
from livefuse.runtime.session import SessionCache
from livefuse.safety.audit import open_audit
from livefuse.safety.cover import cover_frame, draw_slate
from livefuse.safety.intern import intern_picture, intern_source, is_inline_picture
from livefuse.safety.mark_keys import load_mark_keys
from livefuse.safety.picture import MAX_PICTURE_BYTES
from livefuse.telemetry import log_for
from livefuse.token import GENERATING
from livefuse.workers.face_desk import FaceDesk

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from livefuse.clock import Clock
    from livefuse.config import Config, ModelsConfig
    from livefuse.frame import Frame
    from livefuse.job.spec import JobSpec
    from livefuse.ring import RingMode


# A job that hides faces is never passed: with `pass` it is blurred.
LOADING_COVERS: Final[dict[str, Callable[[Frame], None]]] = {
    "blur": cover_frame,
    "slate": draw_slate,
    "pass": cover_frame,
}

_ENDED_KEPT: Final = 16


class Worker:
    """Runs jobs. Its methods may be called from any thread; `add_job` reads model files.

    The last 16 that have ended stay in `jobs`, for their figures.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        self._sessions = SessionCache(config.models)
        self._other_sessions: dict[ModelsConfig, SessionCache] = {}
        self.audit = open_audit(config, clock)
        self.desk = FaceDesk(config, clock, sessions=self._sessions, audit=self.audit)
        self.faces = self.desk.store

    def add_job(self, job_id: str, spec: JobSpec, config: Config | None = None) -> Job:
        """Check `spec` and return its job, not yet started; `config` if it has one of its own.

        Raises:
            LivefuseError: the spec cannot be used; nothing was opened.
        """
        self._release_ended()
        if job_id in self.jobs:
            raise JobError(f"there is a job {job_id!r} already", hint="choose another id")

        config = config or self.config
        if spec.operations:
            self._get_sessions(config.models).check_device()
        if spec.source_face and not GENERATING.isdisjoint(spec.operations):
            self.check_face(spec.source_face, for_job=job_id)
        create_pipeline = partial(self.create_pipeline, config=config, job_id=job_id)
        forget = self._get_sessions(config.models).forget
        keys = load_mark_keys(self.config.safety)
        with log_for(job_id):
            job = Job(job_id, spec, config, self.clock, create_pipeline, forget, keys=keys)
        self.jobs[job_id] = job
        return job

    def release_job(self, job_id: str) -> None:
        """Forget a job that is over or was never started; its figures go with it."""
        self.jobs.pop(job_id, None)

    def _release_ended(self) -> None:
        """Forget the jobs that have ended, but for the last few, whose figures may be asked for."""
        ended = [job_id for job_id, job in list(self.jobs.items()) if job.wait(0)]
        for job_id in ended[: max(len(ended) - _ENDED_KEPT, 0)]:
            self.release_job(job_id)

    def check_face(self, face_id: str, job_id: str | None = None, *, for_job: str = "") -> None:
        """Refuse a face that the job may not show, before anything is made of it.

        Without `job_id` nobody asks whether the consent is for this job; the job's start does.
        `for_job` is named in the log all the same.

        Raises:
            ConsentError: it is not enrolled, or its consent does not hold or not for this job.
            RefusedError: its picture was not kept, or shows a denied face.
            AuditError: a refusal cannot be logged.
            ConfigError: there is no such drawn face.
        """
        if is_avatar(face_id):
            check_avatar(face_id)
        else:
            self.faces.check_source(face_id, job_id, for_job=for_job)

    def find_face(self, name: str) -> str:
        """Return the id of a face named by id, name, `avatar:NAME`, or by its enrolled picture.

        Raises:
            ConsentError: nobody of that name, or nobody who has consented.
        """
        path = Path(name)
        with contextlib.suppress(OSError, ValueError):
            if not name.startswith("avatar:") and path.is_file() and _is_small(path):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                record = self.faces.find_by_digest(digest)
                if record is not None:
                    return record.face_id
        return self.faces.resolve(name)

    def resolve_face(self, reference: str) -> str:
        """Return the id of a face as the API names it; of a picture within JSON its face's id.

        Such a picture is to be enrolled already. Not for an event loop.

        Raises:
            ConsentError: nobody of that name, or nobody who has consented.
            RefusedError: it is base64 of no picture.
        """
        if is_inline_picture(reference):
            return intern_source(reference, self.faces)
        return self.faces.resolve(reference)

    def take_picture(self, picture: bytes, consent: str = "", name: str = "") -> str:
        """Return the face id of a picture's file: of one that is enrolled, or enroll it now.

        Raises:
            RefusedError: it is no picture with exactly one face, the name is taken, or it shows a
                denied face.
            ConsentError: nobody has consented, or no longer.
            ConfigError: the store cannot be written.
            ModelError: a network cannot be had.
        """
        return intern_picture(
            picture, self.faces, consent=consent, check=self.desk.reader.check, name=name
        )

    @staticmethod
    def list_avatars() -> tuple[str, ...]:
        """Return the names of the drawn faces."""
        return tuple(AVATARS)

    def _get_sessions(self, models: ModelsConfig) -> SessionCache:
        """Return the sessions that all jobs share that run on the same devices."""
        if models == self.config.models:
            return self._sessions
        if models not in self._other_sessions:
            self._other_sessions[models] = SessionCache(models)
        return self._other_sessions[models]

    def create_pipeline(
        self,
        mode: RingMode,
        clock: Clock | None = None,
        aside: Executor | None = None,
        *,
        config: Config | None = None,
        job_id: str = "",
    ) -> Pipeline:
        """Return a pipeline on what the worker's jobs share, nothing of it loaded yet.

        A replay brings its own `clock` and the place where side work runs; consents are a matter of
        the worker's clock all the same, and one for certain jobs only does not cover a replay.
        """
        config = config or self.config
        services = Services(
            cover=cover_frame,
            cover_loading=LOADING_COVERS[config.pipeline.while_loading],
            load_source=partial(self.faces.load_source, job_id=job_id),
            list_gallery=self.faces.list_gallery,
            is_allowed=partial(self.faces.is_allowed, job_id=job_id),
            explain_refusal=partial(self.faces.explain_refusal, job_id=job_id),
        )
        return Pipeline(
            config,
            self._get_sessions(config.models),
            clock or self.clock,
            services,
            every_frame=mode == "every_frame",
            aside=aside,
        )

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Stop all jobs; True when all are closed within `timeout_s` each."""
        closed = [job.stop(timeout_s) for job in list(self.jobs.values())]
        return all(closed)


def _is_small(path: Path) -> bool:
    """Say whether a file can be an enrolled picture: a film is not read to find that out."""
    return path.stat().st_size <= MAX_PICTURE_BYTES
