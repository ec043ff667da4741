"""What shows that a person agreed: only its hash is kept, with its name and size. Pure."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import Annotated, Final, Literal

import msgspec

from livefuse.errors import ConsentError

MAX_EVIDENCE_BYTES: Final = 32 * 1024 * 1024
_MAX_NAME: Final = 100


class Evidence(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The SHA-256 of a file (a signed form, a mail), or of what a live match was shown.

    `live`: the person stood before a camera (live.py); the hash is over the poses' embeddings and
    times. `name` and `size_bytes` are the file's.
    """

    kind: Literal["file", "live"]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    name: Annotated[str, msgspec.Meta(max_length=_MAX_NAME)] = ""
    size_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0


def describe_evidence(data: bytes, name: str) -> Evidence:
    """Return what is kept of the file `data`, whose name (or path) is `name`.

    Raises:
        ConsentError: it is empty or larger than 32 MiB.
    """
    if not data:
        raise ConsentError("the file of evidence is empty", hint="give the signed form or the mail")
    if len(data) > MAX_EVIDENCE_BYTES:
        raise ConsentError(
            f"the file of evidence has more than {MAX_EVIDENCE_BYTES >> 20} MiB",
            hint="give the page that was signed",
        )
    return Evidence(
        kind="file",
        sha256=hashlib.sha256(data).hexdigest(),
        name=clean_name(name),
        size_bytes=len(data),
    )


def clean_name(name: str) -> str:
    """Return what is kept of a file's name or path: its last part, what can be printed of it."""
    last = PurePath(name.replace("\\", "/")).name
    return "".join(c for c in last if c.isprintable())[:_MAX_NAME]
