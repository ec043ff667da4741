"""Tells systemd how the daemon is: READY=1, STOPPING=1, WATCHDOG=1 (sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send `state` to the service manager, if there is one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.0)  # a manager that does not listen holds nobody up
        sock.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)


def get_watchdog_s() -> float | None:
    """Return how often the service manager wants to hear of us, in seconds; None: it does not."""
    own = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    with contextlib.suppress(ValueError):
        limit_us = int(os.environ.get("WATCHDOG_USEC", "0"))
        return limit_us / 2e6 if own and limit_us > 0 else None
    return None
