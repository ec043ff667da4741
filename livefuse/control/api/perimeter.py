"""Who stands at the door: by which name, from which address, through which proxy, how often."""

from __future__ import annotations

import ipaddress
import math
import socket
import time
from typing import TYPE_CHECKING, Final

from yarl import URL

from livefuse.addresses import Networks, unwrap
from livefuse.config import HttpConfig, LimitsConfig
from livefuse.control.api.buckets import Buckets
from livefuse.control.api.problems import create_problem

if TYPE_CHECKING:
    from aiohttp import web

    from livefuse.addresses import IpAddress
    from livefuse.control.api.caller import Caller

_BURST_S: Final = 4.0
_S_PER_MIN: Final = 60.0
_SITE_BITS: Final = 64  # what one customer has of IPv6


class Perimeter:
    """What the sections `http` and `limits` say of those who come. On the control loop."""

    def __init__(self, http: HttpConfig | None = None, limits: LimitsConfig | None = None) -> None:
        """Take the sections.

        Raises:
            ConfigError: a proxy's address is none.
        """
        http = http or HttpConfig()
        public = read_host(http.public_host) if http.public_host else ""
        self._public_host = public
        own = {"localhost", http.host.lower(), socket.gethostname().lower(), public}
        self.names = frozenset(own - {""})
        self._proxies = Networks(http.trusted_proxies)
        self._allows_insecure = http.allow_insecure
        self._has_tls = bool(http.tls_cert)
        self.set_limits(limits or LimitsConfig())

    def set_limits(self, limits: LimitsConfig) -> None:
        """Count by `limits` from now on, all from nothing."""
        self.limits = limits
        per_key, per_address = limits.key_requests_per_s, limits.address_requests_per_s
        self._by_key = Buckets(per_key, per_key * _BURST_S)
        self._by_address = Buckets(per_address, per_address * _BURST_S)
        self._wrong = Buckets(limits.wrong_keys_per_min / _S_PER_MIN, limits.wrong_keys_per_min)

    def find_address(self, request: web.Request) -> str:
        """Return who asks: the peer, or whom a trusted proxy names last that is none itself.

        Empty on a unix socket.
        """
        peer = parse_ip(_read_peer(request))
        if peer is None or not self._proxies.allows(peer):
            return "" if peer is None else str(unwrap(peer))
        named = ",".join(request.headers.getall("X-Forwarded-For", ())).split(",")
        for text in reversed(named):
            address = parse_ip(text)
            if address is None:
                break  # whatever stands before that is anybody's invention
            if not self._proxies.allows(address):
                return str(unwrap(address))
        return str(unwrap(peer))

    def find_client(self, request: web.Request) -> str:
        """Return from where somebody asks; empty when a trusted proxy does not say it."""
        address = parse_ip(self.find_address(request))
        return "" if address is None or self._proxies.allows(address) else str(address)

    def is_shared_address(self, address: str) -> bool:
        """Say whether many come from `address`: this machine, a proxy, a unix socket."""
        found = parse_ip(address)
        return found is None or unwrap(found).is_loopback or self._proxies.allows(found)

    def is_own_origin(self, origin: str, host: str) -> bool:
        """Say whether an Origin header (empty: no browser) is the address that was asked."""
        asked = origin.partition("://")[2].lower()
        return not origin or asked == host.lower() or read_host(asked) == self._public_host != ""

    def check_transport(self, request: web.Request) -> web.Response | None:
        """Refuse what came unencrypted, to us or to a trusted proxy, where that is not allowed."""
        peer = parse_ip(_read_peer(request))
        if self._allows_insecure or peer is None:
            return None
        if not self._proxies.allows(peer):
            is_safe = self._has_tls or unwrap(peer).is_loopback
            return None if is_safe else _refuse_plain("use https, or come by the proxy")
        proto = request.headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip().lower()
        is_safe = proto != "http" or self.is_shared_address(self.find_address(request))
        return None if is_safe else _refuse_plain("use https")

    def check_address(self, request: web.Request) -> web.Response | None:
        """Refuse who asks too often, whatever the key."""
        address = self.find_address(request)
        if self.is_shared_address(address):
            return None
        return _slow_down(self._by_address.take(_group(address), time.monotonic()))

    def check_key(self, caller: Caller) -> web.Response | None:
        """Refuse a key that asks too often."""
        return _slow_down(self._by_key.take(caller.key_id, time.monotonic()))

    def check_wrong_key(self, request: web.Request) -> web.Response | None:
        """Refuse who tries too many keys.

        Right ones are always let in: behind an address there may be many people, and nobody guesses
        256 bits.
        """
        group = _group(self.find_address(request))
        return _slow_down(self._wrong.take(group, time.monotonic()), "too many wrong keys")


def parse_ip(text: str) -> IpAddress | None:
    """Return the address in `text`, with or without a port, None when there is none."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def read_host(header: str) -> str:
    """Return the host of a Host header, in lower case, without port and closing dot; else empty."""
    try:
        return (URL(f"http://{header}").host or "").lower().rstrip(".")
    except ValueError:
        return ""


def _read_peer(request: web.Request) -> str:
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


def _group(address: str) -> str:
    """Return what stands for all addresses of one customer."""
    found = parse_ip(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _SITE_BITS), strict=False))
    return address


def _refuse_plain(hint: str) -> web.Response:
    return create_problem(403, "keys and pictures do not go unencrypted", hint)


def _slow_down(wait_s: float, what: str = "too many requests") -> web.Response | None:
    if not wait_s:
        return None
    seconds = math.ceil(wait_s)
    return create_problem(429, what, f"wait {seconds} s", {"Retry-After": str(seconds)})
