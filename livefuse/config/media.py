"""Sections about streams: in, between the stages, out."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from livefuse.config.values import (
    Kbps,
    Mode,
    NonNegative,
    OffsetMs,
    Places,
    Port,
    Positive,
    Threads,
)

StartRule = Literal["one", "all", "none"]


class IngestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Frames in."""

    open_timeout_ms: Positive = 5000
    read_timeout_ms: Positive = 5000
    rtsp_transport: Literal["tcp", "udp"] = "tcp"
    probe_bytes: Positive = 200_000
    analyze_ms: NonNegative = 500
    hardware: Literal["auto", "none"] = "auto"
    decode_threads: Threads = 1
    canvas: Annotated[str, msgspec.Meta(pattern=r"^(source|[1-9]\d{1,4}x[1-9]\d{1,4})$")] = "source"
    reconnect_min_ms: Positive = 1000
    reconnect_max_ms: Positive = 30_000
    camera_size: Annotated[str, msgspec.Meta(pattern=r"^[1-9]\d{1,4}x[1-9]\d{1,4}$")] = "1280x720"
    camera_fps: Positive = 30
    audio: bool = True
    tls_verify: bool = True
    ca_file: str = ""


class RingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Between the stages."""

    mode: Mode = "auto"
    capacity: Places = 2


class EncodeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one encode."""

    encoder: Literal["auto", "libx264", "h264_nvenc", "h264_qsv", "h264_vaapi"] = "auto"
    preset: Literal["ultrafast", "superfast", "veryfast", "faster", "fast", "medium"] = "superfast"
    bitrate_kbps: Kbps = 2500
    keyframe_interval_s: Annotated[float, msgspec.Meta(gt=0.0, le=10.0)] = 2.0
    threads: Threads = 2
    every_frame_threads: Threads = 1


class AudioConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sound."""

    bitrate_kbps: Kbps = 128
    offset_ms: OffsetMs = 0


class HoldConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is shown while no picture comes."""

    show: Literal["hold", "blur", "slate"] = "hold"
    after_ms: Annotated[int, msgspec.Meta(ge=100)] = 1000
    fps: Annotated[float, msgspec.Meta(ge=5.0, le=60.0)] = 5.0


class PublishConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All outputs together."""

    start: StartRule = "one"
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0


class RtmpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pushing to a remote server."""

    stall_ms: Positive = 2000
    connect_timeout_ms: Positive = 5000
    backoff_min_ms: Positive = 500
    backoff_max_ms: Positive = 30_000
    queue_packets: Positive = 120


class RecordConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Writing files."""

    queue_packets: Positive = 600
    overwrite: bool = False
    folder: str = "out"


class HttpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The address where players and people look in."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Port = 8090
    require_key: bool = True
    key_file: str = ""
    public_host: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    trusted_proxies: tuple[str, ...] = ()
    allow_insecure: bool = False
    viewer_queue_bytes: Positive = 1_500_000
    max_viewers: Positive = 32


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    form: Literal["text", "json"] = "text"
