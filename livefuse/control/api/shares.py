"""Places that are few, and how many of them one key may have: so that none locks others out."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from livefuse.control.api.caller import is_large_enough
from livefuse.errors import JobCapacityError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.config import LimitsConfig
    from livefuse.control.api.caller import Caller


def count_share(places: int, caller: Caller, limits: LimitsConfig) -> int:
    """Return how many of `places` the caller's key may have: one at least, an operator's all."""
    if is_large_enough(caller, "operator"):
        return places
    return max(int(places * limits.key_share), 1)


class Places:
    """Who has how many places of one kind. On the control loop.

    `what` and `hint` are told to one too many: what those do who are there, and what helps.
    """

    def __init__(self, what: str, hint: str) -> None:
        self._what = what
        self._hint = hint
        self._held: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How many are taken."""
        return self._held.total()

    @contextlib.contextmanager
    def hold(self, caller: Caller, places: int, limits: LimitsConfig) -> Iterator[None]:
        """Keep one of `places` for the caller.

        Raises:
            JobCapacityError: all are taken, or as many as its key may have.
        """
        key_id = caller.key_id
        if self.taken >= places:
            raise JobCapacityError(f"{self.taken} {self._what}", hint=self._hint)
        if self._held[key_id] >= count_share(places, caller, limits):
            raise JobCapacityError(
                f"{self._held[key_id]} of the {places} places are this key's already",
                hint="close one, or raise limits.key_share",
            )
        self._held[key_id] += 1
        try:
            yield
        finally:
            self._held[key_id] -= 1
            if not self._held[key_id]:
                del self._held[key_id]
