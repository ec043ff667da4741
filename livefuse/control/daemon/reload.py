"""What a new configuration changes: at once, for which jobs, or with the next daemon only. Pure.

`RULES` says it of each section, or of each key where those of a section differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from livefuse.config import SECTIONS
from livefuse.ingest import get_kind
from livefuse.publish import find_file_path
from livefuse.token import GENERATING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from livefuse.config import Config
    from livefuse.control.api.views import Spec

_PLACELESS: Final = frozenset({"test", "demo", "whip"})
"""Kinds of sources that reach for nothing: no host is called, no file read."""


class Rule(NamedTuple):
    """How a change is applied.

    `at_once`: the daemon and its workers take it over while they run. `jobs`: those that `concerns`
    names begin again in new workers. `daemon`: it waits for the next daemon.
    """

    kind: Literal["at_once", "jobs", "daemon"]
    concerns: Callable[[Spec], bool] = lambda _: False


def _jobs_with(*operations: str) -> Rule:
    return Rule("jobs", lambda spec: not frozenset(operations).isdisjoint(_read(spec)))


def _read(spec: Spec) -> tuple[str, ...]:
    return spec.operations or ()


def _has_file(spec: Spec) -> bool:
    return any(find_file_path(target.strip()) is not None for target in spec.targets)


def _has_push(spec: Spec) -> bool:
    return any(find_file_path(target.strip()) is None for target in spec.targets)


def _reaches_out(spec: Spec) -> bool:
    return bool(spec.targets) or get_kind(spec.source.strip()) not in _PLACELESS


_AT_ONCE: Final = Rule("at_once")
_NEXT_DAEMON: Final = Rule("daemon")
_ALL_JOBS: Final = Rule("jobs", lambda _: True)
_REACHING_OUT: Final = Rule("jobs", _reaches_out)

RULES: Final[Mapping[str, Rule | Mapping[str, Rule]]] = {
    "ingest": _ALL_JOBS,
    "ring": _ALL_JOBS,
    "pipeline": _ALL_JOBS,
    "detect": _jobs_with("detect"),
    "track": _jobs_with("detect"),
    "align": _jobs_with("align"),
    # What a face is compared by: who is who, and whether a source face is a denied one.
    "identify": _jobs_with("identify", *GENERATING),
    "background": _jobs_with("background"),
    "swap": _jobs_with("swap"),
    "puppet": _jobs_with("puppet"),
    "beautify": _jobs_with("beautify"),
    "enhance": _jobs_with("enhance"),
    "mask": _jobs_with("swap", "enhance"),
    # A face that cannot be swapped is blurred.
    "blur": _jobs_with("blur", "swap"),
    "governor": _ALL_JOBS,
    "hold": _ALL_JOBS,
    "watchdog": _ALL_JOBS,
    "encode": _ALL_JOBS,
    "mark": _ALL_JOBS,
    "audio": _ALL_JOBS,
    "publish": _ALL_JOBS,
    "rtmp": Rule("jobs", _has_push),
    "record": Rule("jobs", _has_file),
    "replay": _ALL_JOBS,
    "http": {
        "enabled": _NEXT_DAEMON,
        "host": _NEXT_DAEMON,
        "port": _NEXT_DAEMON,
        "require_key": _NEXT_DAEMON,
        "key_file": _NEXT_DAEMON,
        "public_host": _NEXT_DAEMON,
        "tls_cert": _NEXT_DAEMON,
        "tls_key": _NEXT_DAEMON,
        "trusted_proxies": _NEXT_DAEMON,
        "allow_insecure": _NEXT_DAEMON,
        "viewer_queue_bytes": _ALL_JOBS,
        "max_viewers": _AT_ONCE,
    },
    "grpc": _NEXT_DAEMON,
    # Jobs dial again by the rules that they were started with; who opens a session of WebRTC is
    # judged by those of now.
    "access": {
        "restrict": _REACHING_OUT,
        "source_schemes": _REACHING_OUT,
        "target_schemes": _REACHING_OUT,
        "networks": _REACHING_OUT,
        "webrtc_networks": _AT_ONCE,
        "listen_addresses": _REACHING_OUT,
        "media_folders": _REACHING_OUT,
    },
    "limits": _AT_ONCE,
    # Every job can be watched by WHEP.
    "webrtc": _ALL_JOBS,
    "models": Rule("jobs", lambda spec: bool(_read(spec))),
    "safety": _NEXT_DAEMON,
    "refuse": Rule("jobs", lambda spec: bool(spec.source_face)),
    "audit": _NEXT_DAEMON,
    "daemon": {
        "folder": _NEXT_DAEMON,
        "jobs_per_worker": _AT_ONCE,
        "spare_workers": _AT_ONCE,
        "warm_up": _AT_ONCE,
        "silence_s": _AT_ONCE,
        "max_deaths_per_min": _AT_ONCE,
        "admission": _AT_ONCE,
        "cores_share": _AT_ONCE,
        "max_encodes": _AT_ONCE,
        "when_full": _AT_ONCE,
        "queue_places": _AT_ONCE,
        "drain_s": _AT_ONCE,
    },
    "tracing": _NEXT_DAEMON,
    "log": _AT_ONCE,
}


class Changes(NamedTuple):
    """The keys (`section.key`) that differ, by how they are applied."""

    at_once: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    daemon: tuple[str, ...] = ()

    @property
    def applied_sections(self) -> list[str]:
        """The sections of what is applied, in the order of the alphabet."""
        return sorted({key.partition(".")[0] for key in self.at_once + self.jobs})

    def concern(self, spec: Spec) -> bool:
        """Say whether a job that does what `spec` says is to begin again for them."""
        return any(find_rule(*key.split(".")).concerns(spec) for key in self.jobs)


def find_rule(section: str, key: str) -> Rule:
    """Return how a change of a key is applied."""
    found = RULES[section]
    return found if isinstance(found, Rule) else found[key]


def compare(before: Config, after: Config) -> Changes:
    """Return what differs, in the order of the configuration."""
    found: dict[str, list[str]] = {"at_once": [], "jobs": [], "daemon": []}
    for section, kind in SECTIONS.items():
        old, new = getattr(before, section), getattr(after, section)
        for field in msgspec.structs.fields(kind) if old != new else ():
            if getattr(old, field.name) != getattr(new, field.name):
                group = find_rule(section, field.name).kind
                found[group].append(f"{section}.{field.name}")
    return Changes(**{group: tuple(keys) for group, keys in found.items()})


def take_over(before: Config, after: Config) -> Config:
    """Return `after` with all that waits for the next daemon as it was in `before`."""
    kept: dict[str, dict[str, object]] = {}
    for name in compare(before, after).daemon:
        section, _, key = name.partition(".")
        kept.setdefault(section, {})[key] = getattr(getattr(before, section), key)
    sections = {
        section: msgspec.structs.replace(getattr(after, section), **values)
        for section, values in kept.items()
    }
    return msgspec.structs.replace(after, **sections)
