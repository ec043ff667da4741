"""Sections about the machine and the people: models, marks, the private store."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from livefuse.config.values import Share


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Network files."""

    folder: str = ""
    packs: str = ""
    mirror: str = ""
    offline: bool = False
    providers: Literal["auto", "cpu", "cuda", "tensorrt"] = "auto"
    device: Annotated[int, msgspec.Meta(ge=0, le=63)] = 0
    precision: Literal["auto", "fp32", "fp16", "int8"] = "auto"
    gpu_memory_mb: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 4096
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    cache_folder: str = ""


class WatchdogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What breaks in a live job is made anew, and how soon it counts as broken."""

    step_limit_ms: Annotated[int, msgspec.Meta(ge=100)] = 10_000
    encode_limit_ms: Annotated[int, msgspec.Meta(ge=100)] = 700
    load_limit_ms: Annotated[int, msgspec.Meta(ge=100)] = 60_000
    max_restarts_per_min: Annotated[int, msgspec.Meta(ge=0, le=60)] = 5


class MarkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How generated pictures are marked; that they are cannot be switched off."""

    corner: Literal["top-left", "top-right", "bottom-left", "bottom-right"] = "bottom-right"
    height: Annotated[float, msgspec.Meta(ge=0.05, le=0.2)] = 0.05
    webrtc_sei: bool = True
    c2pa: Literal["auto", "off", "require"] = "auto"
    c2pa_max_mb: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1024


class TracingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where spans of requests go (OpenTelemetry)."""

    endpoint: Annotated[str, msgspec.Meta(pattern=r"^(https?://\S+)?$")] = ""
    sample_share: Share = 1.0


class SafetyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where faces, consents and keys are kept."""

    folder: str = ""
    forget_picture: bool = False
    keep_expired_days: Annotated[int, msgspec.Meta(ge=0, le=3650)] = 7


class RefuseConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose likeness is not made here: by name in a prompt, by face in a picture."""

    deny_names: str = ""
    allow_names: str = ""
    face_margin: Annotated[float, msgspec.Meta(ge=-0.5, le=0.5)] = 0.0


class AuditConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log of who did what; that there is one cannot be switched off."""

    rotate_mb: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 16
    keep_files: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    when_full: Literal["stop", "go_on"] = "stop"
