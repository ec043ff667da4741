"""Kinds of values that sections share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=64)]
Places = Annotated[int, msgspec.Meta(ge=1, le=64)]
Kbps = Annotated[int, msgspec.Meta(ge=1, le=500_000)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
OffsetMs = Annotated[int, msgspec.Meta(ge=-10_000, le=10_000)]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Mode = Literal["auto", "live", "every_frame"]
Amount = Annotated[float, msgspec.Meta(ge=0.0)]
AboveZero = Annotated[float, msgspec.Meta(gt=0.0)]
Colour = Annotated[str, msgspec.Meta(pattern=r"^#[0-9a-fA-F]{6}$")]
