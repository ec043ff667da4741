"""What jobs may read, and where they may send, when others than the machine's owner ask for them.

A key of the API opens livefuse, not the network and the files behind it (SSRF): what is asked for
is judged when it is submitted, again when the job starts, and where the dialling is ours also at
each dial (livefuse/ingest/dial.py), as a name may point elsewhere by then. What offers of WebRTC
name (candidates) are addresses too, which are sent checks of connectivity (RFC 8445): those of
whoever asks are, others only where `webrtc_networks` has them.
"""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from livefuse.addresses import Networks, check_host, resolve_by_system, split_url, unwrap
from livefuse.control.places import place_target
from livefuse.errors import ConfigError, IngestConnectError, PublishConnectError, RefusedError
from livefuse.ingest import get_file_path, get_kind, get_recording_path
from livefuse.publish import find_file_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from livefuse.addresses import Resolver
    from livefuse.config import AccessConfig, Config, RecordConfig

_HOSTLESS: Final = frozenset({"listen", "whip", "test", "demo", "camera"})
_RECORDING: Final = "replay:"
_LAST_PRIVILEGED_PORT: Final = 1023


def settle_access(config: Config, *, is_shared: bool) -> Config:
    """Return `config` with `access.restrict` said: `auto` is `on` where others may ask."""
    if config.access.restrict != "auto":
        return config
    access = msgspec.structs.replace(config.access, restrict="on" if is_shared else "off")
    return msgspec.structs.replace(config, access=access)


class Access:
    """Judges URLs by the section `access`. Resolving names waits for the network."""

    def __init__(
        self,
        config: AccessConfig,
        resolve: Resolver = resolve_by_system,
        *,
        on_refusal: Callable[[RefusedError], None] = lambda _: None,
    ) -> None:
        """Take the section; `on_refusal` is told of each refusal before it is raised.

        Raises:
            ConfigError: a network in it is none.
        """
        self._config = config
        self._networks = Networks(config.networks)
        self._webrtc_networks = Networks(config.webrtc_networks)
        self._resolve = resolve
        self._on_refusal = on_refusal

    @property
    def is_restricted(self) -> bool:
        """Whether anything is refused at all."""
        return self._config.restrict == "on"

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Tell of what is refused meanwhile."""
        try:
            yield
        except RefusedError as error:
            self._on_refusal(error)
            raise

    def check_source(self, url: str) -> str:
        """Return `url`; a file's as its whole path, links and `..` followed.

        Raises:
            RefusedError: a job may not read from there.
            IngestConnectError: there is no such host now.
            ConfigError: this is no path.
        """
        with self.telling():
            return self._judge_source(url)

    def _judge_source(self, url: str) -> str:
        if not self.is_restricted:
            return url
        kind = get_kind(url)
        self._check_scheme(kind, self._config.source_schemes, "read from")
        if kind == "file":
            return self._place_file(get_file_path(url))
        if kind == "replay":
            return _RECORDING + self._place_file(get_recording_path(url))
        if kind == "listen":
            self._check_listener(url.partition(":")[2])
        if kind not in _HOSTLESS:
            try:
                self._check_host(url)
            except OSError:
                raise IngestConnectError(
                    f"there is no host {split_url(url).hostname}", hint="check its name"
                ) from None
        return url

    def check_target(self, url: str) -> None:
        """Judge a target; where files may lie is not judged here (places.py).

        Raises:
            RefusedError: a job may not send there.
            PublishConnectError: there is no such host now.
        """
        with self.telling():
            self._judge_target(url)

    def _judge_target(self, url: str) -> None:
        if not self.is_restricted:
            return
        kind = "file" if find_file_path(url) is not None else url.partition(":")[0].lower()
        self._check_scheme(kind, self._config.target_schemes, "send to")
        if kind in ("file", "virtualcam"):
            return
        try:
            self._check_host(url)
        except OSError:
            raise PublishConnectError(
                f"there is no host {split_url(url).hostname}", hint="check its name"
            ) from None

    def place_target(self, url: str, config: RecordConfig) -> str:
        """Judge a target; return it, a file's as its whole path (places.py).

        Raises:
            LivefuseError: as `check_target` and `places.place_target`.
        """
        self.check_target(url)
        with self.telling():
            return place_target(url, config)

    def allows_candidate(self, host: str, asker: str) -> bool:
        """Say whether `host`, which a peer of WebRTC has named as its own, may be sent checks.

        The address that it asks from (`asker`, empty: not known) may, this machine where it asks
        from here, and `webrtc_networks`; never a name, nor an address of many.
        """
        try:
            named = unwrap(ipaddress.ip_address(host))
        except ValueError:
            return False
        is_class_e = named.version == 4 and named.is_reserved  # noqa: PLR2004 - of IPv6 ::1 is, too
        if "%" in host or named.is_multicast or named.is_unspecified or is_class_e:
            return False
        own = unwrap(ipaddress.ip_address(asker)) if asker else None
        if own is not None and (named == own or (named.is_loopback and own.is_loopback)):
            return True
        return self._webrtc_networks.allows(named)

    def check_spec(self, source: str, targets: Sequence[str]) -> None:
        """Judge again what was submitted, before it starts.

        Raises:
            LivefuseError: as above.
        """
        self.check_source(source)
        for target in targets:
            self.check_target(target)

    def _check_scheme(self, kind: str, allowed: Sequence[str], what: str) -> None:
        if kind not in allowed:
            near = difflib.get_close_matches(kind, allowed, n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise RefusedError(
                f"jobs here may not {what} {kind[:32]}:",
                hint=f"{guess}choose from {', '.join(allowed)}",
            )

    def _check_listener(self, url: str) -> None:
        parts = split_url(url)
        if parts.hostname not in self._config.listen_addresses or (
            parts.port is not None and parts.port <= _LAST_PRIVILEGED_PORT
        ):
            raise RefusedError(
                "jobs may not listen there",
                hint=f"choose from {', '.join(self._config.listen_addresses)} and a port above "
                f"{_LAST_PRIVILEGED_PORT} (access.listen_addresses)",
            )

    def _check_host(self, url: str) -> None:
        host = split_url(url).hostname
        if not host:
            raise RefusedError("the URL names no host", hint="write SCHEME://HOST:PORT/PATH")
        check_host(host, self._networks, self._resolve)

    def _place_file(self, text: str) -> str:
        """Return the whole path, below one of the folders.

        What lies elsewhere is refused in the same words whether or not it is there.
        """
        try:
            whole = Path(text).resolve()
            folders = [Path(f).expanduser().resolve() for f in self._config.media_folders]
        except (OSError, ValueError, RuntimeError):
            raise ConfigError("the file's path cannot be used", hint="check it") from None
        if not any(whole.is_relative_to(folder) and whole != folder for folder in folders):
            raise RefusedError(
                "jobs may not read files there", hint="access.media_folders says where they may"
            )
        try:
            is_file = whole.is_file()
        except OSError:  # a name that is too long for the disc
            is_file = False
        if not is_file:
            raise ConfigError("there is no such file", hint="check its path")
        return str(whole)
