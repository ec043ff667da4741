"""How FFmpeg is let near a source: by which protocols, as which formats, through which door.

Whoever sends a stream may send a playlist instead, which names what is to be opened next. Every
source from the network is therefore opened with the protocols of its own scheme alone, so that no
playlist reaches files, and without the formats that lead elsewhere. Where the job is another's than
the owner's (`access.restrict`), what is dialled is judged at each dial, and redirects too:

    http https hls   through a proxy of ours (relay.py): every address, whoever named it
    rtsp             through a relay of ours, over TCP: no redirect
    rtmp tcp udp     by the address that was judged
    rtsps rtmps      by name, as the certificate is checked against it: whoever points the name
                     elsewhere has no certificate for what is there. A server of RTSP that has one
                     may still send us to another server that speaks RTSP.
    srt              by the address that was judged
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import av

from livefuse.addresses import (
    Networks,
    build_tcurl,
    check_host,
    pin_url,
    resolve_by_system,
    split_url,
)
from livefuse.errors import IngestConnectError, RefusedError
from livefuse.ingest.relay import Proxy, RtspRelay
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

    from livefuse.addresses import Resolver
    from livefuse.config import AccessConfig
    from livefuse.ingest.relay import Relay

_HTTP: Final = "http,https,httpproxy,tls,tcp,crypto,data"
PROTOCOLS: Final = {
    "http": _HTTP,
    "https": _HTTP,
    "hls": _HTTP,
    "rtsp": "rtsp,rtp,srtp,tcp,udp",
    "rtsps": "rtsp,rtsps,rtp,srtp,tls,tcp,udp",
    "rtmp": "rtmp,tcp",
    "rtmps": "rtmps,rtmp,tls,tcp,httpproxy",
    "udp": "udp",
    "tcp": "tcp",
    "file": "file,crypto,data",
}
# Formats that only name what is to be opened. Playlists over HTTP are what HLS and DASH are; who
# reads a file of his own may read his playlists.
_LEADS_ELSEWHERE: Final = frozenset(
    {"concat", "image2", "imf", "lavfi", "rtp", "sap", "sdp", "vobsub", "webm_dash_manifest"}
)
_PLAYLISTS: Final = frozenset({"hls", "dash"})
_RTSP_PORT: Final = 554
_HTTP_SCHEMES: Final = frozenset({"http", "https", "hls"})
_MAY_WAIT: Final = frozenset({"udp", "srt"})
# By UDP a server may say where its packets come from, and ours go to.
_OVER_TCP: Final = {"rtsp_transport": "tcp"}


class Dial(NamedTuple):
    """What FFmpeg is told to open, with these options besides those of its scheme."""

    address: str
    options: Mapping[str, str]


class Dialler:
    """Says how a URL is dialled, anew for each dial. From one thread; `has_refused` from any."""

    def __init__(
        self,
        url: str,
        access: AccessConfig | None,
        timeout_s: float,
        resolve: Resolver = resolve_by_system,
    ) -> None:
        self._url = url
        self._scheme = url.partition("://")[0].lower()
        self._networks = (
            Networks(access.networks) if access is not None and access.restrict == "on" else None
        )
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._door: Relay | None = None
        self._dials = 0

    @property
    def is_restricted(self) -> bool:
        """Whether dials are judged."""
        return self._networks is not None

    @property
    def has_refused(self) -> bool:
        """Whether the last dial led to where no job may go."""
        return self._door is not None and self._door.has_refused

    def choose(self, target: str) -> Dial:
        """Return how `target`, the URL as FFmpeg writes it, is dialled now. Waits for a name.

        Raises:
            RefusedError: no job may go there.
            IngestConnectError: there is no such host.
        """
        self.close()
        options = build_whitelists(self._scheme, is_restricted=self.is_restricted)
        if self._networks is None:
            return Dial(target, options)
        try:
            dial = self._choose_door(split_url(target), self._networks)
        except OSError:
            raise IngestConnectError(
                f"{redact_url(self._url)}: there is no such host", hint="check its name"
            ) from None
        return Dial(dial.address, {**options, **dial.options})

    def _choose_door(self, parts: SplitResult, networks: Networks) -> Dial:
        host, scheme, target = parts.hostname or "", self._scheme, parts.geturl()
        if not host and scheme in _MAY_WAIT:
            return Dial(target, {})  # for whoever sends
        addresses = check_host(host, networks, self._resolve).addresses
        if scheme in _HTTP_SCHEMES:
            return self._open_proxy(target, networks)
        if scheme == "rtsp":
            return self._open_relay(parts, networks)
        if scheme == "rtsps":
            return Dial(target, _OVER_TCP)
        if scheme == "rtmps":
            return Dial(target, {})
        address = addresses[self._dials % len(addresses)]
        self._dials += 1
        options = {"rtmp_tcurl": build_tcurl(target)} if scheme == "rtmp" else {}
        return Dial(pin_url(parts, address), options)

    def close(self) -> None:
        """Close the door of the last dial."""
        door, self._door = self._door, None
        if door is not None:
            door.close()

    def explain(self) -> RefusedError:
        """Return the error of a source that led to where no job may go."""
        return RefusedError(
            f"{redact_url(self._url)} leads to an address that jobs may not dial",
            hint="access.networks says which they may",
        )

    def _open_relay(self, parts: SplitResult, networks: Networks) -> Dial:
        host, port = parts.hostname or "", parts.port or _RTSP_PORT
        door = RtspRelay(host, port, networks, self._resolve, self._timeout_s)
        self._door = door
        info, at, _ = parts.netloc.rpartition("@")
        near = parts._replace(netloc=f"{info}{at}127.0.0.1:{door.port}")
        return Dial(near.geturl(), _OVER_TCP)

    def _open_proxy(self, target: str, networks: Networks) -> Dial:
        # FFmpeg would go past a proxy for the hosts that this names.
        os.environ.pop("no_proxy", None)
        door = Proxy(networks, self._resolve, self._timeout_s)
        self._door = door
        return Dial(target, {"http_proxy": door.url})


def build_whitelists(scheme: str, *, is_restricted: bool) -> dict[str, str]:
    """Return FFmpeg's options that bound what a source of `scheme` may have opened."""
    protocols = PROTOCOLS.get(scheme)
    if protocols is None:
        return {}
    options = {"protocol_whitelist": protocols}
    if scheme in {"rtsp", "rtsps"}:
        return options | {"format_whitelist": "rtsp"}
    if scheme == "file" and not is_restricted:
        return options
    return options | {"format_whitelist": _list_formats(with_playlists=scheme in _HTTP_SCHEMES)}


@cache
def _list_formats(*, with_playlists: bool) -> str:
    """Return the names of all formats but those that lead elsewhere."""
    left_out = _LEADS_ELSEWHERE if with_playlists else _LEADS_ELSEWHERE | _PLAYLISTS
    return ",".join(sorted(av.formats_available - left_out - {"rtsp"}))
