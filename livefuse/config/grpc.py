"""The section about gRPC."""

from __future__ import annotations

from typing import Annotated

import msgspec

from livefuse.config.values import Port


class GrpcConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The API over gRPC too, on a port of its own. `max_workers`: so many calls at a time."""

    enabled: bool = False
    host: str = "127.0.0.1"
    port: Port = 8091
    max_workers: Annotated[int, msgspec.Meta(ge=4, le=256)] = 16
