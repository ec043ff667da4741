"""Sections about those who are not the machine's owner: where their jobs go, how much they ask."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from livefuse.config.values import NonNegative, Positive

Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
Rate = Annotated[float, msgspec.Meta(ge=0.0, le=1_000_000.0)]


class AccessConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What jobs may read, and where they may send, when others than the owner ask for them."""

    restrict: Literal["auto", "on", "off"] = "auto"
    source_schemes: tuple[str, ...] = (
        "rtsp", "rtsps", "rtmp", "rtmps", "http", "https", "hls", "listen", "whip", "file", "test",
        "demo",
    )  # fmt: skip
    target_schemes: tuple[str, ...] = ("rtmp", "rtmps", "file")
    networks: tuple[str, ...] = ("public",)
    webrtc_networks: tuple[str, ...] = ("public",)
    listen_addresses: tuple[str, ...] = ("127.0.0.1", "::1")
    media_folders: tuple[str, ...] = ()


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one caller may ask of the API; 0 sets no limit."""

    key_requests_per_s: Rate = 100.0
    address_requests_per_s: Rate = 200.0
    wrong_keys_per_min: Rate = 20.0
    connections: Positive = 256
    connections_per_address: NonNegative = 64
    event_streams: Positive = 16
    key_share: Share = 0.5
    jobs_per_key: NonNegative = 32
