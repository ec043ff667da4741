"""The section about recordings of what came in."""

from __future__ import annotations

from typing import Annotated

import msgspec


class ReplayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job keeps of its input, to be replayed when something went wrong."""

    keep_s: Annotated[float, msgspec.Meta(ge=0.0, le=600.0)] = 0.0
    keep_mb: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 64
    folder: str = "recordings"
    keep_files: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
