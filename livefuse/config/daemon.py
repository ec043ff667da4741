"""The section about `livefuse serve`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class DaemonConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`livefuse serve`: jobs kept, and run by processes of their own."""

    folder: str = ""
    jobs_per_worker: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    spare_workers: Annotated[int, msgspec.Meta(ge=0, le=8)] = 1
    warm_up: bool = True
    silence_s: Annotated[float, msgspec.Meta(ge=1.0, le=60.0)] = 5.0
    max_deaths_per_min: Annotated[int, msgspec.Meta(ge=1, le=60)] = 5
    admission: bool = True
    cores_share: Annotated[float, msgspec.Meta(gt=0.0, le=8.0)] = 1.0
    max_encodes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    when_full: Literal["refuse", "queue"] = "refuse"
    queue_places: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 32
    drain_s: Annotated[float, msgspec.Meta(ge=1.0, le=600.0)] = 10.0
