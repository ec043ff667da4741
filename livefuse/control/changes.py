"""What a running job does is changed: whole, from its next frame on, no change lost."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from livefuse.errors import JobChangedError
from livefuse.safety.refusals import list_texts
from livefuse.token import GENERATING, patch_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from livefuse.control.jobs import JobManager
    from livefuse.job.job import Job
    from livefuse.token import Token


def change_token(
    manager: JobManager, job_id: str, patch: bytes | str | Mapping[str, Any], etag: str = ""
) -> Token:
    """Apply the JSON merge patch `patch` (RFC 7396) to a running job's token.

    What new operations need is loaded first, beside the stream. Not for an event loop.

    Raises:
        JobNotFoundError, JobError: no such job, or it does not run.
        JobChangedError: `etag` is given and is not the token's any more.
        AuditError: it cannot be logged.
        TokenError: the patch makes a token that cannot be used.
        RefusedError: it names a public figure, or the face is denied.
        ConsentError, ModelError: the face may not be used, a network cannot be had.
    """
    managed, job, worker = manager.get(job_id), manager.get_running(job_id), manager.worker
    with managed.changing, manager.audit.note_refusal(job_id, "change"):
        before = job.token.get()
        check_etag(before, etag)
        changed = patch_token(before, patch)
        said = set(list_texts(changed.extensions)) - set(list_texts(before.extensions))
        worker.faces.refusals.check_texts(sorted(said), "the token", job=job_id)
        is_new = changed.source_face != before.source_face or _begins_to_show(before, changed)
        if changed.source_face and is_new:
            worker.check_face(changed.source_face, job_id)
        if changed.operations != before.operations:
            job.prepare_changes(changed)
        manager.audit.note_changed(job_id, before, changed)
        # The job itself only renews its token: what was checked is what comes about.
        return job.token.update(lambda now: patch_token(now, patch).renew(worker.clock.epoch_s()))


def remove_output(manager: JobManager, job: Job, which: str) -> None:
    """Send no more to an output of `job`, by its id or URL.

    Raises:
        JobNotFoundError: there is no such output.
    """
    urls = {status.id: status.url for status in job.list_outputs()}
    job.remove_output(which)
    manager.audit.note_output_gone(job.job_id, urls.get(which, which))


def write_recording(manager: JobManager, job: Job) -> Path:
    """Write what is kept of the input of `job`, faces bare; return where.

    Raises:
        AuditError: it cannot be logged.
        LivefuseError: as `Job.write_recording`.
    """
    manager.audit.note_recording(job.job_id)
    return job.write_recording()


def _begins_to_show(before: Token, changed: Token) -> bool:
    """Say whether `changed` shows the source face, which `before` only held."""
    return GENERATING.isdisjoint(before.operations) and not GENERATING.isdisjoint(
        changed.operations
    )


def create_etag(token: Token) -> str:
    """Return the strong ETag of what clients can change of `token`."""
    parts = (token.operations, token.parameters, token.source_face, token.ttl_s, token.extensions)
    return f'"{hashlib.blake2b(msgspec.json.encode(parts), digest_size=9).hexdigest()}"'


def check_etag(token: Token, etag: str) -> None:
    """Refuse when `etag` is given and is not the token's.

    Raises:
        JobChangedError: somebody else has changed it.
    """
    given = {part.strip() for part in etag.split(",")} if etag else set()
    if given and "*" not in given and create_etag(token) not in given:
        raise JobChangedError("the token has been changed meanwhile", hint="read it again first")
