"""Who calls, as a daemon tells its worker: in place of a key, behind a secret of those two.

The daemon has judged key and role already; the worker judges by the same rule and hides the same,
so it has to know whom it answers.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from livefuse.control.api.caller import Caller
from livefuse.control.api.key import is_same_key


class Forwarded:
    """Both ends of it, for one `secret` (without a dot) that the daemon made for its worker."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def write_key(self, caller: Caller) -> str:
        """Return what the daemon sends as the bearer token."""
        named = urlsafe_b64encode(msgspec.json.encode(caller)).decode()
        return f"{self._secret}.{named}"

    def find_caller(self, given: str) -> Caller | None:
        """Return who calls, None when this does not come from the daemon (the worker's end)."""
        secret, _, named = given.partition(".")
        if not is_same_key(secret, self._secret):
            return None
        try:
            return msgspec.json.decode(urlsafe_b64decode(named), type=Caller)
        except (ValueError, msgspec.DecodeError):
            return None
