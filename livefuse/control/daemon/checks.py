"""The name under which a worker looks at a job that it is not to run: is it one that can be?"""

from __future__ import annotations

import secrets
from typing import Final

_PREFIX: Final = "check-"
_BYTES: Final = 6
_MAX_ID: Final = 64


def name_check(job_id: str) -> str:
    """Return a new name for a look at the job `job_id`; of a long one its beginning is in it."""
    return f"{_PREFIX}{secrets.token_hex(_BYTES)}-{job_id}"[:_MAX_ID]


def get_checked_job(name: str) -> str:
    """Return the job that `name` is a look at; any other name as it is."""
    head = len(_PREFIX) + 2 * _BYTES + 1
    return name[head:] if name.startswith(_PREFIX) and len(name) > head else name
