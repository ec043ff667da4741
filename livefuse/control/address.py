"""Where a daemon listens, as `LIVEFUSE_URL` and those who pass requests on say it."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from livefuse.errors import ConfigError

_HINT: Final = "write http://HOST:PORT, https://HOST:PORT or http+unix://%2Fpath%2Fto%2Fsocket"
_PORTS: Final = {"http": 80, "https": 443}


class Address(NamedTuple):
    """Where a server listens: a unix `socket`, or `host` and `port`; `key` as its URL says it."""

    scheme: str
    host: str
    port: int
    socket: str = ""
    base: str = ""
    key: str = ""

    def __str__(self) -> str:
        """Return it as a person may see it."""
        if self.socket:
            return f"unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.base}"


def parse_daemon_url(url: str) -> Address:
    """Return the address that `url` names: http, https, http+unix with the path quoted as host.

    An absolute path is that of a unix socket.

    Raises:
        ConfigError: it is none of these.
    """
    url = url.strip()
    if url.startswith("/"):
        return Address("http+unix", "localhost", 0, url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("this URL cannot be read", hint=_HINT) from None
    keys = parse_qs(parts.query).get("key", [""])
    base = parts.path.rstrip("/")
    if parts.scheme == "http+unix" and parts.netloc:
        return Address("http+unix", "localhost", 0, unquote(parts.netloc), base, keys[-1])
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigError("this is no address of a daemon", hint=_HINT)  # it may hold its key
    port = port or _PORTS[parts.scheme]
    return Address(parts.scheme, parts.hostname, port, "", base, keys[-1])
