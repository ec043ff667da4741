"""Problem details that a daemon answered, as the errors that they were there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.control.api.problems import ERROR_TYPE
from livefuse.control.api.views import Problem
from livefuse.errors import (
    ConfigError,
    DaemonAuthError,
    DaemonError,
    JobCapacityError,
    JobChangedError,
    JobError,
    JobNotFoundError,
    LivefuseError,
)

if TYPE_CHECKING:
    from livefuse.control.address import Address
    from livefuse.control.api.views import JobView
    from livefuse.control.http_client import Answer

# For problems that name no error: those of the guard, of limits, and of whatever stands between.
_BY_STATUS: Final[dict[int, type[LivefuseError]]] = {
    400: ConfigError,
    401: DaemonAuthError,
    403: DaemonAuthError,
    404: JobNotFoundError,
    409: JobError,
    412: JobChangedError,
    413: ConfigError,
    415: ConfigError,
    422: ConfigError,
    429: JobCapacityError,
    503: JobCapacityError,
}


_NO_KEY: Final = 401


def create_error(answer: Answer, where: Address) -> LivefuseError:
    """Return what a problem says, as the error of this process that it is.

    By the name at the end of its `type`; without one, or with one that this version does not know,
    by its status.
    """
    try:
        problem = msgspec.json.decode(answer.data, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        kind = _BY_STATUS.get(answer.status, DaemonError)
        return kind(f"{where} answers {answer.status}", hint="is it a livefuse?")
    name = problem.type.removeprefix(ERROR_TYPE)
    kind = _find_error(name) or _BY_STATUS.get(answer.status, DaemonError)
    hint = "set LIVEFUSE_KEY to a key of it" if answer.status == _NO_KEY else problem.hint
    return kind(problem.detail, hint=hint)


def create_job_error(job: JobView) -> LivefuseError:
    """Return the error that a job failed with."""
    return (_find_error(job.error_type) or JobError)(job.error or f"the job {job.id} has failed")


def _find_error(name: str) -> type[LivefuseError] | None:
    kinds = [LivefuseError]
    while kinds:
        kind = kinds.pop()
        if kind.__name__ == name:
            return kind
        kinds += kind.__subclasses__()
    return None
