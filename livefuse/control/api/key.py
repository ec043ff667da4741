"""The key that opens the API: made once, kept in a private file, the same from start to start."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.control.api.caller import LOCAL
from livefuse.errors import ConfigError
from livefuse.safety.folder import find_safety_folder, make_private_folder, write_private

if TYPE_CHECKING:
    from livefuse.config import Config, HttpConfig
    from livefuse.control.api.caller import FindCaller

_FILE: Final = "api.key"
_BYTES: Final = 24
_SHORTEST: Final = 16


def load_key(config: Config) -> str:
    """Return the key, making one on the first start; empty where none is to be asked for.

    Raises:
        ConfigError: the file cannot be read or written, or holds no key; or others than this
            machine are to come in without one.
    """
    if not config.http.require_key:
        check_keyless(config.http)
        return ""
    path = Path(config.http.key_file).expanduser() if config.http.key_file else None
    if path is None:
        folder = find_safety_folder(config.safety)
        path = folder / _FILE
        if not path.exists():
            make_private_folder(folder)
            write_private(path, f"{secrets.token_urlsafe(_BYTES)}\n".encode())
    try:
        key = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(
            f"the key file {path} cannot be read ({reason})", hint="check http.key_file"
        ) from None
    if len(key) < _SHORTEST or not key.isprintable() or " " in key:
        raise ConfigError(
            f"{path} holds no key", hint=f"put {_SHORTEST} letters and digits or more into it"
        )
    return key


def check_keyless(http: HttpConfig) -> None:
    """Refuse to ask for no key where others than this machine can reach us.

    Raises:
        ConfigError: they can.
    """
    if not is_loopback(http.host):
        raise ConfigError(
            f"http.host is {http.host} and no key is asked for: anybody could come in",
            hint="leave http.require_key true, or http.host at 127.0.0.1",
        )


def is_same_key(given: str, key: str) -> bool:
    """Compare in constant time; `given` may hold any bytes that a header can."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode())


def accept_key(key: str) -> FindCaller:
    """Return what knows one key, its owner's; with an empty one everybody is the owner."""
    return lambda given: LOCAL if not key or is_same_key(given, key) else None


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach what listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
