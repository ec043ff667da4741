"""Many tokens, each for its time: bounded, collected, and what they hold given back."""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S
from livefuse.errors import TokenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.token.token import Token

_SPARE_PLACES: Final = 64


class _Held:
    """A token in the store. `turn` tells its latest place in the queue from outdated ones."""

    __slots__ = ("deadline_ns", "is_lease", "token", "turn")

    def __init__(self, token: Token, deadline_ns: int, turn: int, *, is_lease: bool) -> None:
        self.token = token
        self.deadline_ns = deadline_ns
        self.turn = turn
        self.is_lease = is_lease


class TokenStore:
    """Tokens by `request_id` until their time is over. Safe from any thread.

    `on_release` is told once of each token that leaves, whichever way, outside the lock: there
    what it refers to is given back. Time is the clock's monotonic time, so that a wall clock that
    is set does not end a job. A full store lets go of the token that would end first; a lease
    (a running job's) never gives way.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        capacity: int = 1024,
        on_release: Callable[[Token], None] | None = None,
    ) -> None:
        self._clock = clock
        self._capacity = capacity
        self._on_release = on_release
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._queue: list[tuple[int, int, str]] = []  # deadline, turn, request_id
        self._turn = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._held)

    def put(self, token: Token, *, is_lease: bool = False) -> None:
        """Keep `token` for what is left of its time; one with the same id is replaced.

        Raises:
            TokenError: it is over already, or the store is full of leases.
        """
        left_s = token.timestamp + token.ttl_s - self._clock.epoch_s()
        if left_s < 0.0:
            raise TokenError("the token has expired", hint="send a new one")
        now_ns = self._clock.now_ns()
        with self._lock:
            gone = self._pop_expired(now_ns)
            earlier = self._held.pop(token.request_id, None)
            if earlier is not None:
                gone.append(earlier.token)
            is_full = len(self._held) >= self._capacity
            victim = self._find_victim() if is_full else None
            if victim is not None:
                gone.append(self._held.pop(victim).token)
                self.evicted += 1
            if not is_full or victim is not None:
                self._place(token, now_ns + int(left_s * NS_PER_S), is_lease=is_lease)
        self._release(gone)
        if is_full and victim is None:
            raise TokenError(
                f"all {self._capacity} places are taken by running jobs", hint="stop one first"
            )

    def get(self, request_id: str) -> Token | None:
        """Return the token, or None when there is none or its time is over."""
        now_ns = self._clock.now_ns()
        with self._lock:
            held = self._held.get(request_id)
            return held.token if held is not None and held.deadline_ns >= now_ns else None

    def renew(self, request_id: str, ttl_s: float | None = None) -> Token:
        """Begin the token's time again, and return the token that says so.

        Raises:
            TokenError: there is none, or its time is over.
        """
        now_ns = self._clock.now_ns()
        with self._lock:
            held = self._held.get(request_id)
            if held is None or held.deadline_ns < now_ns:
                raise TokenError("no such token, or it has expired", hint="send a new one")
            token = held.token.renew(self._clock.epoch_s(), ttl_s)
            self._place(token, now_ns + int(token.ttl_s * NS_PER_S), is_lease=held.is_lease)
        return token

    def remove(self, request_id: str) -> bool:
        """Let go of a token before its time; False when there is none."""
        with self._lock:
            held = self._held.pop(request_id, None)
        self._release([held.token] if held is not None else [])
        return held is not None

    def collect(self) -> int:
        """Let go of the tokens whose time is over; return how many. `put` does so too."""
        with self._lock:
            gone = self._pop_expired(self._clock.now_ns())
        self._release(gone)
        return len(gone)

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            gone = [held.token for held in self._held.values()]
            self._held.clear()
            self._queue.clear()
        self._release(gone)

    def _place(self, token: Token, deadline_ns: int, *, is_lease: bool) -> None:
        self._turn += 1
        self._held[token.request_id] = _Held(token, deadline_ns, self._turn, is_lease=is_lease)
        if len(self._queue) > 2 * len(self._held) + _SPARE_PLACES:
            # Renewed and removed tokens leave their places behind.
            self._queue = [entry for entry in self._queue if self._is_current(entry)]
            heapq.heapify(self._queue)
        heapq.heappush(self._queue, (deadline_ns, self._turn, token.request_id))

    def _is_current(self, entry: tuple[int, int, str]) -> bool:
        held = self._held.get(entry[2])
        return held is not None and held.turn == entry[1]

    def _pop_expired(self, now_ns: int) -> list[Token]:
        gone: list[Token] = []
        while self._queue and self._queue[0][0] < now_ns:
            entry = heapq.heappop(self._queue)
            if self._is_current(entry):
                gone.append(self._held.pop(entry[2]).token)
        return gone

    def _find_victim(self) -> str | None:
        while self._queue and not self._is_current(self._queue[0]):
            heapq.heappop(self._queue)
        if self._queue and not self._held[self._queue[0][2]].is_lease:
            return self._queue[0][2]
        others = [(h.deadline_ns, name) for name, h in self._held.items() if not h.is_lease]
        return min(others)[1] if others else None

    def _release(self, tokens: list[Token]) -> None:
        if self._on_release is not None:
            for token in tokens:
                self._on_release(token)
