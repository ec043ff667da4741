"""Which network addresses may be dialled: hosts as people write them, judged by what they mean.

A name that points elsewhere tomorrow, `2130706433` for 127.0.0.1, an IPv6 address with an IPv4 one
inside: what counts is the addresses that a host stands for, all of them. The resolver is an
argument; nothing here opens a connection.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from livefuse.errors import ConfigError, RefusedError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver = Callable[[str], Sequence[str]]
"""Returns the addresses of a host; raises OSError when there are none. Waits for the network."""

PUBLIC: Final = "public"
ANY: Final = "any"
# The registries of special purposes, RFC 6890 and what was added since; multicast; class E.
_SPECIAL_4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
# Of IPv6 only this is routed between people (RFC 4291), less Teredo and its kin, documentation,
# and 6to4, which holds any IPv4 address.
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6: Final = tuple(
    ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?\.?")
_NUMBER: Final = re.compile(r"(?:0[xX][0-9a-fA-F]*|0[0-7]*|[1-9][0-9]*)")
_MAX_PARTS: Final = 4
_RTMP_PORT: Final = 1935


class Networks:
    """A list of what is allowed: `public`, `any`, and networks like `10.1.0.0/16`."""

    def __init__(self, names: Sequence[str]) -> None:
        """Read the list.

        Raises:
            ConfigError: one of them is no network.
        """
        self._allows_all = ANY in names
        self._allows_public = PUBLIC in names
        self._listed = tuple(map(parse_network, (n for n in names if n not in (ANY, PUBLIC))))

    def allows(self, address: IpAddress) -> bool:
        """Say whether `address`, or the IPv4 address inside it, is in the list."""
        address = unwrap(address)
        if self._allows_all or (self._allows_public and is_public(address)):
            return True
        return any(address in network for network in self._listed)


class Host(NamedTuple):
    """A host that may be dialled, by these addresses. `is_name`: it had to be looked up."""

    name: str
    addresses: tuple[str, ...]
    is_name: bool


def parse_network(text: str) -> IpNetwork:
    """Return the network, or the single address, that `text` says.

    Raises:
        ConfigError: it is none.
    """
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ConfigError(
            f"{text[:64]!r} is no network", hint="write public, any, 192.168.1.7 or 10.1.0.0/16"
        ) from None


def unwrap(address: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 one stands for: mapped, or behind NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_public(address: IpAddress) -> bool:
    """Say whether `address` is one of the internet's, not this machine's or its network's."""
    address = unwrap(address)
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL that means the same to everybody who reads it.

    Raises:
        RefusedError: it holds what programs read differently: spaces, backslashes, letters that are
            not ASCII in its host, several `@`.
    """
    is_odd = any(c.isspace() or not c.isprintable() or c == "\\" for c in url)
    parts = None
    with contextlib.suppress(ValueError):
        found = urlsplit(url)
        parts = found if found.port != 0 else None  # asking raises where it is no number
    if parts is None or is_odd or parts.netloc.count("@") > 1:
        raise RefusedError("the URL is not clear", hint="write SCHEME://HOST:PORT/PATH, no spaces")
    return parts


def parse_literal(host: str) -> IpAddress | None:
    """Return the address that `host` spells out, in any way that systems take; None for a name.

    IPv4 may be one to four numbers, each decimal, octal (0177) or hexadecimal (0x7f), the last of
    which fills the rest, as inet_aton(3) reads them.
    """
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host)
        except ValueError:
            return None
    parts = host.removesuffix(".").split(".")
    if len(parts) > _MAX_PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return None
    try:
        *heads, last = map(_read_number, parts)
    except ValueError:
        return None
    rest = 8 * (_MAX_PARTS - len(heads))
    if any(head > 0xFF for head in heads) or last >= 1 << rest:  # noqa: PLR2004 - a byte
        return None
    value = last
    for index, head in enumerate(heads):
        value |= head << (24 - 8 * index)
    return ipaddress.IPv4Address(value)


def check_host(host: str, networks: Networks, resolve: Resolver) -> Host:
    """Return the host with its addresses, each of which `networks` allow.

    Raises:
        RefusedError: it is no host, or one of its addresses is not allowed. Which, is not said:
            that would tell strangers of our network.
        OSError: there is no such name, or nobody answers for it.
    """
    literal = parse_literal(host)
    if literal is not None:
        _check_address(literal, host, networks)
        return Host(host, (str(literal),), is_name=False)
    if not _HOST.fullmatch(host):
        raise RefusedError(
            "the URL's host is neither a name nor an address",
            hint="write names of other letters in their xn-- form",
        )
    found = tuple(resolve(host))
    if not found:
        raise OSError("no address")
    for text in found:
        _check_address(ipaddress.ip_address(text.partition("%")[0]), host, networks)
    # What most networks route comes first.
    return Host(host, tuple(sorted(found, key=lambda text: ":" in text)), is_name=True)


def pin_url(parts: SplitResult, address: str) -> str:
    """Return the URL with `address` in the place of its host."""
    info, at, _ = parts.netloc.rpartition("@")
    host = f"[{address}]" if ":" in address else address
    port = f":{parts.port}" if parts.port is not None else ""
    return parts._replace(netloc=f"{info}{at}{host}{port}").geturl()


def build_tcurl(url: str) -> str:
    """Return what FFmpeg tells an RTMP server of the address it was asked for.

    By a name, that is, though it dials an address: servers choose by it which of their sites is
    meant.
    """
    parts = split_url(url)
    names = parts.path.strip("/").split("/")
    app = "/".join(names[:2] if len(names) > 2 else names[:1])  # noqa: PLR2004 - app/instance/key
    return f"rtmp://{parts.hostname}:{parts.port or _RTMP_PORT}/{app}"


def resolve_by_system(host: str) -> tuple[str, ...]:
    """Return the addresses of `host` as this machine finds them. Waits for the network.

    Raises:
        OSError: there are none.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("no such name") from None
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _check_address(address: IpAddress, host: str, networks: Networks) -> None:
    if not networks.allows(address):
        raise RefusedError(
            f"{host} is not an address that jobs may dial", hint="access.networks says which are"
        )


def _read_number(text: str) -> int:
    lower = text.lower()
    if lower.startswith("0x"):
        return int(lower[2:] or "0", 16)
    return int(lower, 8) if lower.startswith("0") and lower != "0" else int(lower)
