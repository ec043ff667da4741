"""What jobs go through, as records of the audit log: one for each change of state, none per frame.

job.created -> job.submitted -> job.started -> job.running <-> job.degraded -> job.stopping ->
job.stopped | job.failed; job.deleted; job.refused (no consent); token.changed, source.changed,
output.added, output.removed, recording.written, replay.started -> replay.stopped | replay.failed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.control.access import Access
from livefuse.control.job_watch import JobWatch
from livefuse.errors import ConsentError, LivefuseError
from livefuse.job.spec import JobSpec
from livefuse.redact import redact_text, redact_url
from livefuse.safety.records import AVATAR_PREFIX
from livefuse.token import GENERATING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from livefuse.config import Config
    from livefuse.control.api.views import Spec
    from livefuse.errors import RefusedError
    from livefuse.job.job import Job
    from livefuse.safety.audit_records import Fact
    from livefuse.token import Token
    from livefuse.workers.local import Worker

_NO_CONSENT_NEEDED: Final = "none needed: a drawn face"


class JobAudit:
    """Safe from any thread. What is to be done is logged before it is, and refused when it cannot.

    What ends something (a stop, an output that goes) is done all the same, and logged when there is
    room again.
    """

    def __init__(self, worker: Worker) -> None:
        self._log = worker.audit
        self._faces = worker.faces
        self.watch = JobWatch(worker.audit, worker.config.audit, worker.clock)

    def note_created(self, job_id: str, owner: str) -> None:
        """A draft is there.

        Raises:
            AuditError: that cannot be logged.
        """
        self._log.append("job.created", job=job_id, facts={"owner": owner} if owner else {})

    def note_submitted(self, job_id: str, spec: JobSpec) -> None:
        """A job has been told what to do.

        Raises:
            AuditError: that cannot be logged.
        """
        self._log.append("job.submitted", job=job_id, facts=describe_spec(spec))

    def note_started(self, job: Job) -> None:
        """A job is about to start.

        Raises:
            ConsentError: its face may not be shown.
            AuditError: it cannot be logged.
        """
        self.watch.look()  # the end of its life before comes first
        facts = self._describe_face(job.job_id, job.spec.source_face, job.spec.operations)
        self._log.append("job.started", job=job.job_id, facts=describe_spec(job.spec) | facts)
        self.watch.add(job)

    def note_stopping(self, job_id: str) -> None:
        """Somebody wants a job that runs to stop."""
        self._log.owe("job.stopping", job=job_id)

    def note_deleted(self, job_id: str) -> None:
        """A job is no more."""
        self.watch.look()
        self._log.owe("job.deleted", job=job_id)

    def note_changed(self, job_id: str, before: Token, after: Token) -> None:
        """The token of a running job is about to change; nothing is logged when it does not.

        Raises:
            AuditError: that cannot be logged.
        """
        facts = describe_change(before, after)
        if not facts:
            return
        if "source_face" in facts or "operations" in facts:
            facts |= self._describe_face(job_id, after.source_face, after.operations)
        event = "source.changed" if "source_face" in facts else "token.changed"
        self._log.append(event, job=job_id, facts=facts)

    @contextlib.contextmanager
    def note_output(self, job_id: str, url: str) -> Iterator[None]:
        """A target is about to be added; when that fails after all, that is logged too.

        Raises:
            AuditError: it cannot be logged.
        """
        self._log.append("output.added", job=job_id, facts={"output": redact_url(url)})
        try:
            yield
        except LivefuseError as error:
            self.note_output_gone(job_id, url, error.message)
            raise

    def note_output_gone(self, job_id: str, url: str, reason: str = "") -> None:
        """A target was removed, or (with `reason`) could not be added after all."""
        facts = {"output": redact_url(url)} | ({"reason": redact_text(reason)} if reason else {})
        self._log.owe("output.removed", job=job_id, facts=facts)

    def note_recording(self, job_id: str) -> None:
        """What was kept of the input is about to be written to disc.

        Raises:
            AuditError: it cannot be logged.
        """
        self._log.append("recording.written", job=job_id)

    @contextlib.contextmanager
    def note_replay(self, spec: JobSpec) -> Iterator[None]:
        """A recording is about to be treated in virtual time; without targets nothing is kept.

        Raises:
            ConsentError: its face may not be shown.
            AuditError: it cannot be logged.
        """
        if not spec.targets:
            yield
            return
        with self.note_refusal("", "replay"):
            facts = self._describe_face("", spec.source_face, spec.operations)
        self._log.append("replay.started", facts=describe_spec(spec) | facts)
        try:
            yield
        except LivefuseError as error:
            self._log.owe("replay.failed", facts={"reason": redact_text(error.message)})
            raise
        self._log.owe("replay.stopped")

    @contextlib.contextmanager
    def note_refusal(self, job_id: str, what: str) -> Iterator[None]:
        """Log when `what` is refused meanwhile for want of consent."""
        try:
            yield
        except ConsentError as error:
            facts = {"what": what, "reason": redact_text(error.message)}
            self._log.owe("job.refused", job=job_id, facts=facts)
            raise

    def tell_unknown(self, job_id: str, find_face: Callable[[str], str]) -> Callable[[str], str]:
        """Return `find_face` (name to id), which logs that it found nobody who has consented."""

        def find(name: str) -> str:
            with self.note_refusal(job_id, "source face"):
                return find_face(name)

        return find

    def open_access(self, job_id: str, config: Config) -> Access:
        """Return what judges the URLs of a job, and logs each that it refuses."""

        def tell(error: RefusedError) -> None:
            facts = {"reason": redact_text(error.message)}
            self._log.owe("refusal.address", job=job_id, facts=facts)

        return Access(config.access, on_refusal=tell)

    def close(self) -> None:
        """Write what is left to be written; jobs that have ended are logged as such."""
        self.watch.close()

    def _describe_face(
        self, job_id: str, face_id: str, operations: Iterable[str]
    ) -> dict[str, Fact]:
        """Return whose face is put in and by which consent.

        Raises:
            ConsentError: by none, or by one for other jobs.
        """
        if not face_id or GENERATING.isdisjoint(operations):
            return {}
        if face_id.startswith(AVATAR_PREFIX):
            return {"source_face": face_id, "consent": _NO_CONSENT_NEEDED}
        record = self._faces.check_consent(face_id, job_id)
        return {
            "source_face": face_id,
            "source_face_sha256": record.picture_sha256,
            "consent": record.consent_sha256,
            "consent_of": record.consent.who,
        }


def describe_spec(spec: JobSpec | Spec) -> dict[str, Fact]:
    """Return what a job is to do, without secrets; its mode as it is asked for, or chosen."""
    facts: dict[str, Fact] = {
        "source": redact_url(spec.source),
        "outputs": [redact_url(target) for target in spec.targets],
        "operations": list(spec.operations or ()),
        "mode": spec.choose_mode() if isinstance(spec, JobSpec) else spec.mode,
    }
    return facts | ({"source_face": spec.source_face} if spec.source_face else {})


def describe_change(before: Token, after: Token) -> dict[str, Fact]:
    """Return what differs, as it is now; nothing when all is the same."""
    facts: dict[str, Fact] = {}
    if before.operations != after.operations:
        facts["operations"] = list(after.operations)
    if before.source_face != after.source_face:
        facts["source_face"] = after.source_face
        facts["source_face_before"] = before.source_face
    for name in ("parameters", "extensions"):
        changed = _list_changes(getattr(before, name), getattr(after, name))
        if changed:
            facts[name] = changed
    if before.ttl_s != after.ttl_s:
        facts["ttl_s"] = after.ttl_s
    return facts


def _list_changes(before: object, after: object) -> list[str]:
    """Return `name=value` for each that differs, as they would be written in JSON."""
    old, new = _flatten(msgspec.to_builtins(before)), _flatten(msgspec.to_builtins(after))
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [redact_text(f"{name}={new.get(name, 'null')}") for name in changed]


def _flatten(value: Any, prefix: str = "") -> dict[str, str]:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict):
        return {prefix: msgspec.json.encode(value).decode()}
    flat: dict[str, str] = {}
    for name, inner in value.items():
        flat |= _flatten(inner, f"{prefix}.{name}" if prefix else str(name))
    return flat
