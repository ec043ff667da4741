"""What a running job does is changed: whole, from its next frame on, no change lost."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from livefuse.errors import JobChangedError
from livefuse.token import patch_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from livefuse.control.jobs import JobManager
    from livefuse.token import Token


def change_token(
    manager: JobManager, job_id: str, patch: bytes | str | Mapping[str, Any], etag: str = ""
) -> Token:
    """Apply the JSON merge patch `patch` (RFC 7396) to a running job's token.

    What new operations need is loaded first, beside the stream. Not for an event loop.

    Raises:
        JobNotFoundError, JobError: no such job, or it does not run.
        JobChangedError: `etag` is given and is not the token's any more.
        TokenError: the patch makes a token that cannot be used.
        ConsentError, ModelError: the face may not be used, a network cannot be had.
    """
    job, worker = manager.get_running(job_id), manager.worker
    before = job.token.get()
    check_etag(before, etag)
    changed = patch_token(before, patch)
    if changed.source_face and changed.source_face != before.source_face:
        worker.check_face(changed.source_face)
    if changed.operations != before.operations:
        job.prepare_changes(changed)

    def apply(current: Token) -> Token:
        check_etag(current, etag)
        return patch_token(current, patch).renew(worker.clock.epoch_s())

    return job.token.update(apply)


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
