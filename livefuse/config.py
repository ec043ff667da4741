"""One frozen configuration tree. `configs/livefuse.toml` lists every key; a test holds them equal.

Read from defaults, then a TOML file, then `--set section.key=value`, each checked against the tree.
"""

from __future__ import annotations

import difflib
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


Positive = Annotated[int, msgspec.Meta(ge=1)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=64)]
Places = Annotated[int, msgspec.Meta(ge=1, le=64)]
Kbps = Annotated[int, msgspec.Meta(ge=1, le=500_000)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
OffsetMs = Annotated[int, msgspec.Meta(ge=-10_000, le=10_000)]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Mode = Literal["auto", "live", "every_frame"]


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


class DetectConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Finding faces."""

    model: str = "centerface"
    input_long_side: Positive = 384
    light_input_long_side: Positive = 224
    every_n: Positive = 3
    full_every_n: Positive = 30
    threads: Threads = 1
    every_frame_input_long_side: Positive = 640
    every_frame_light_input_long_side: Positive = 320
    every_frame_every_n: Positive = 10
    every_frame_threads: Threads = 2
    min_score: Share = 0.5
    keep_score: Share = 0.3


class TrackConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Following faces between detections."""

    hold_frames: NonNegative = 15
    change_level: Annotated[float, msgspec.Meta(ge=0.0)] = 18.0
    smooth_min_cutoff_hz: Annotated[float, msgspec.Meta(gt=0.0)] = 1.5
    smooth_beta: Annotated[float, msgspec.Meta(ge=0.0)] = 6.0


class BlurConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Covering faces."""

    style: Literal["gaussian", "mosaic", "solid", "picture"] = "gaussian"
    strength: Share = 0.8
    size: Annotated[float, msgspec.Meta(ge=0.5, le=4.0)] = 1.35
    feather: Share = 0.15
    colour: Annotated[str, msgspec.Meta(pattern=r"^#[0-9a-fA-F]{6}$")] = "#202020"
    picture: str = ""


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


class HttpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The address where players and people look in."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Port = 8090
    viewer_queue_bytes: Positive = 4_000_000
    max_viewers: Positive = 32


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Network files."""

    folder: str = ""
    providers: Literal["auto", "cpu", "cuda", "tensorrt"] = "auto"


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    form: Literal["text", "json"] = "text"


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole tree."""

    ingest: IngestConfig = IngestConfig()
    ring: RingConfig = RingConfig()
    detect: DetectConfig = DetectConfig()
    track: TrackConfig = TrackConfig()
    blur: BlurConfig = BlurConfig()
    encode: EncodeConfig = EncodeConfig()
    audio: AudioConfig = AudioConfig()
    rtmp: RtmpConfig = RtmpConfig()
    record: RecordConfig = RecordConfig()
    http: HttpConfig = HttpConfig()
    models: ModelsConfig = ModelsConfig()
    log: LogConfig = LogConfig()


SECTIONS: Final = {field.name: field.type for field in msgspec.structs.fields(Config)}


def load_config(path: Path | None = None, settings: tuple[str, ...] = ()) -> Config:
    """Return the defaults, changed by the TOML file at `path` and by `section.key=value` settings.

    Raises:
        ConfigError: the file cannot be read, or a key or value is wrong (the nearest right
            key is named).
    """
    tree: dict[str, Any] = _read_toml(path) if path is not None else {}
    for setting in settings:
        _apply_setting(tree, setting)
    _check_keys(tree, str(path) if path is not None else "--set")
    try:
        return msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:
        raise _explain_value(str(error), tree) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ConfigError(
            f"cannot read the configuration {path} ({reason})", hint="check the path of --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML ({error})", hint="mend that line") from None


def _apply_setting(tree: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and name):
        raise ConfigError(
            f"cannot read the setting {setting!r}", hint="write --set section.key=value"
        )
    try:
        value: Any = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = tree.setdefault(section, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{section} is a section, not a value", hint="write section.key=value")
    table[name] = value


def _check_keys(tree: dict[str, Any], where: str) -> None:
    for section, table in tree.items():
        if section not in SECTIONS:
            raise ConfigError(
                f"unknown section [{section}] in {where}",
                hint=_suggest(section, list(SECTIONS), "sections"),
            )
        known = [field.name for field in msgspec.structs.fields(SECTIONS[section])]
        for key in table if isinstance(table, dict) else ():
            if key not in known:
                raise ConfigError(
                    f"unknown key {section}.{key} in {where}", hint=_suggest(key, known)
                )


def _explain_value(said: str, tree: dict[str, Any]) -> ConfigError:
    """Return what msgspec `said` of a value (`... - at $.section.key`), with what fits there."""
    reason, _, path = said.partition(" - at `$.")
    section, _, key = path.rstrip("`").partition(".")
    field = next((f for f in _list_fields(section) if f.name == key), None)
    if field is None:
        return ConfigError(
            f"[{section}] cannot be used: {reason}", hint="write section.key = value under it"
        )
    value = tree[section][key]
    if get_origin(field.type) is Literal:
        choices = [str(choice) for choice in get_args(field.type)]
        hint = _suggest(str(value), choices, "choices")
    elif "regex" in reason:
        hint = (
            f"the default is {field.default!r}; write the like of it, as configs/livefuse.toml says"
        )
    else:
        hint = f"{reason[:1].lower()}{reason[1:]}; the default is {field.default!r}"
    return ConfigError(f"{section}.{key} cannot be {value!r}", hint=hint)


def _list_fields(section: str) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(SECTIONS[section]) if section in SECTIONS else ()


def _suggest(name: str, known: list[str], what: str = "keys") -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{guess}the {what} are {', '.join(known)}"
