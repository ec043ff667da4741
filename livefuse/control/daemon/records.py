"""What the daemon keeps of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from livefuse.control.api.views import JobPhase, Spec
from livefuse.telemetry import Statistics

if TYPE_CHECKING:
    from livefuse.token import Token


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended: the name, in errors.py, of what it failed with, and its last figures."""

    error_type: str = ""
    figures: Statistics | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is kept. Times are in seconds since 1970.

    `owner` is the id of the key that made it. `is_wanted`: it was started and nobody stopped it, so
    it runs again after whatever ends it. `reason` says why it is in its phase. `restarts` counts
    the workers it has lost since it was started. `revision` grows with every change. `ending` is
    of its last end; a job that was started again has none.
    """

    job_id: str
    owner: str = ""
    owner_name: str = ""
    phase: JobPhase = "draft"
    reason: str = ""
    since_epoch_s: float
    created_epoch_s: float
    is_wanted: bool = False
    restarts: int = 0
    revision: int = 0
    spec: Spec | None = None
    ending: Ending = Ending()
    is_damaged: bool = False
    """The spec is there but cannot be opened: its key is gone."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered to a request that carried an Idempotency-Key; status 0: not yet."""

    status: int = 0
    body: bytes = b""
    location: str = ""


def apply_token(spec: Spec, token: Token) -> Spec:
    """Return `spec` as a running job with `token` goes on from it: what was patched is in it.

    The amounts of a look are among the token's parameters already.
    """
    return msgspec.structs.replace(
        spec,
        operations=token.operations,
        parameters=token.parameters,
        source_face=token.source_face,
        look="",
    )
