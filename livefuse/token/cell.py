"""One token, many threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.token.token import Token


class TokenCell:
    """One token shared by many threads: reading is one reference, updates lose nothing."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._lock = threading.Lock()

    def get(self) -> Token:
        """Return the current token; never waits."""
        return self._token

    def lease(self, now_epoch_s: float) -> Token:
        """Return the current token for work that goes on: it is renewed when half its time is over.

        Waits only then, at most for another thread's update.
        """
        token = self._token
        if now_epoch_s - token.timestamp <= token.ttl_s / 2:
            return token
        return self.update(lambda current: current.renew(now_epoch_s))

    def update(self, change: Callable[[Token], Token]) -> Token:
        """Replace the token by `change(token)`; concurrent updates follow one another.

        When `change` raises, the token stays as it was.
        """
        with self._lock:
            self._token = change(self._token)
            return self._token
