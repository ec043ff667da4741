"""One frozen configuration tree. `configs/livefuse.toml` lists every key; a test holds them equal.

Read from defaults, then a TOML file, then `--set section.key=value`, each checked against the tree.
"""

from __future__ import annotations

import difflib
import tomllib
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import msgspec

from livefuse.config.access import AccessConfig, LimitsConfig
from livefuse.config.daemon import DaemonConfig
from livefuse.config.faces import (
    AlignConfig,
    BackgroundConfig,
    BeautifyConfig,
    BlurConfig,
    DetectConfig,
    EnhanceConfig,
    IdentifyConfig,
    MaskConfig,
    PipelineConfig,
    PuppetConfig,
    SwapConfig,
    TrackConfig,
)
from livefuse.config.grpc import GrpcConfig
from livefuse.config.load import LADDER, GovernorConfig, Rung
from livefuse.config.media import (
    AudioConfig,
    EncodeConfig,
    HoldConfig,
    HttpConfig,
    IngestConfig,
    LogConfig,
    PublishConfig,
    RecordConfig,
    RingConfig,
    RtmpConfig,
)
from livefuse.config.replay import ReplayConfig
from livefuse.config.system import (
    AuditConfig,
    MarkConfig,
    ModelsConfig,
    RefuseConfig,
    SafetyConfig,
    TracingConfig,
    WatchdogConfig,
)
from livefuse.config.values import Mode
from livefuse.config.webrtc import IceServer, WebRtcConfig
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "LADDER",
    "AccessConfig",
    "AlignConfig",
    "AudioConfig",
    "AuditConfig",
    "BackgroundConfig",
    "BeautifyConfig",
    "BlurConfig",
    "Config",
    "DaemonConfig",
    "DetectConfig",
    "EncodeConfig",
    "EnhanceConfig",
    "GovernorConfig",
    "GrpcConfig",
    "HoldConfig",
    "HttpConfig",
    "IceServer",
    "IdentifyConfig",
    "IngestConfig",
    "LimitsConfig",
    "LogConfig",
    "MarkConfig",
    "MaskConfig",
    "Mode",
    "ModelsConfig",
    "PipelineConfig",
    "PublishConfig",
    "PuppetConfig",
    "RecordConfig",
    "RefuseConfig",
    "ReplayConfig",
    "RingConfig",
    "RtmpConfig",
    "Rung",
    "SafetyConfig",
    "SwapConfig",
    "TracingConfig",
    "TrackConfig",
    "WatchdogConfig",
    "WebRtcConfig",
    "load_config",
]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole tree."""

    ingest: IngestConfig = IngestConfig()
    ring: RingConfig = RingConfig()
    pipeline: PipelineConfig = PipelineConfig()
    detect: DetectConfig = DetectConfig()
    track: TrackConfig = TrackConfig()
    align: AlignConfig = AlignConfig()
    identify: IdentifyConfig = IdentifyConfig()
    background: BackgroundConfig = BackgroundConfig()
    swap: SwapConfig = SwapConfig()
    puppet: PuppetConfig = PuppetConfig()
    beautify: BeautifyConfig = BeautifyConfig()
    enhance: EnhanceConfig = EnhanceConfig()
    mask: MaskConfig = MaskConfig()
    blur: BlurConfig = BlurConfig()
    governor: GovernorConfig = GovernorConfig()
    hold: HoldConfig = HoldConfig()
    watchdog: WatchdogConfig = WatchdogConfig()
    encode: EncodeConfig = EncodeConfig()
    mark: MarkConfig = MarkConfig()
    audio: AudioConfig = AudioConfig()
    publish: PublishConfig = PublishConfig()
    rtmp: RtmpConfig = RtmpConfig()
    record: RecordConfig = RecordConfig()
    replay: ReplayConfig = ReplayConfig()
    http: HttpConfig = HttpConfig()
    grpc: GrpcConfig = GrpcConfig()
    access: AccessConfig = AccessConfig()
    limits: LimitsConfig = LimitsConfig()
    webrtc: WebRtcConfig = WebRtcConfig()
    models: ModelsConfig = ModelsConfig()
    safety: SafetyConfig = SafetyConfig()
    refuse: RefuseConfig = RefuseConfig()
    audit: AuditConfig = AuditConfig()
    daemon: DaemonConfig = DaemonConfig()
    tracing: TracingConfig = TracingConfig()
    log: LogConfig = LogConfig()


_LONGEST_SHOWN: Final = 120
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
    except ValueError as error:  # no TOML, no UTF-8, or a number too long for Python
        raise ConfigError(f"{path} is not TOML ({error})", hint="mend that line") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply", hint="write less into it") from None


def _apply_setting(tree: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and name and _is_text(setting)):
        raise ConfigError(
            f"cannot read the setting {setting[:_LONGEST_SHOWN]!r}",
            hint="write --set section.key=value",
        )
    try:
        value: Any = tomllib.loads(f"value = {text.strip()}")["value"]
    except ValueError:  # no TOML, or a number too long for Python
        value = text.strip()
    except RecursionError:
        raise ConfigError(f"{_show(key)} is nested too deeply", hint="write less into it") from None
    table = tree.setdefault(section, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{section} is a section, not a value", hint="write section.key=value")
    table[name] = value


def _check_keys(tree: dict[str, Any], where: str) -> None:
    for section, table in tree.items():
        if section not in SECTIONS:
            raise ConfigError(
                f"unknown section [{_show(section)}] in {where}",
                hint=_suggest(section, list(SECTIONS), "sections"),
            )
        known = [field.name for field in msgspec.structs.fields(SECTIONS[section])]
        for key in table if isinstance(table, dict) else ():
            if key not in known:
                raise ConfigError(
                    f"unknown key {section}.{_show(key)} in {where}", hint=_suggest(key, known)
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
    shown = _show(repr(value))
    return ConfigError(f"{section}.{key} cannot be {shown}", hint=hint)


def _is_text(text: str) -> bool:
    """Say whether `text` came as UTF-8: an argument may hold any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _show(text: str) -> str:
    """Return what somebody wrote as it can stand in a sentence: one line, not long."""
    line = " ".join(text.split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line[:_LONGEST_SHOWN])
    return f"{line}..." if len(text) > _LONGEST_SHOWN else line


def _list_fields(section: str) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(SECTIONS[section]) if section in SECTIONS else ()


def _suggest(name: str, known: list[str], what: str = "keys") -> str:
    near = difflib.get_close_matches(name[:_LONGEST_SHOWN], known, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{guess}the {what} are {', '.join(known)}"
