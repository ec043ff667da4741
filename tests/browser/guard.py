"""Notes every address that this process dials or sends to and that is not this machine's."""

from __future__ import annotations

import contextlib
import ipaddress
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"})
_hearers: list[list[str]] = []
_hooked = False


@cache
def _list_own_addresses() -> frozenset[str]:
    addresses = psutil.net_if_addrs().values()
    return frozenset(one.address.partition("%")[0] for each in addresses for one in each)


def is_own(host: str) -> bool:
    """Say whether `host` is this machine: one of its own addresses. Names and mDNS are not."""
    host = host.partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified or host in _list_own_addresses()


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event not in _EVENTS or not _hearers:
        return
    address = args[0] if event == "socket.getaddrinfo" else args[1]
    host = address[0] if isinstance(address, tuple) and address else address
    if isinstance(host, str) and not host.startswith("/") and not is_own(host):
        for heard in _hearers:
            heard.append(f"{event} {host}")


@contextlib.contextmanager
def watch_sockets() -> Iterator[list[str]]:
    """Give the list of what goes elsewhere, as it happens. An audit hook hears all."""
    global _hooked  # noqa: PLW0603 - an audit hook cannot be taken out again
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    heard: list[str] = []
    _hearers.append(heard)
    try:
        yield heard
    finally:
        _hearers.remove(heard)
