"""Several requests in one run: faces of one frame, and frames of several jobs.

Nobody waits for company. While a run is on, whoever comes is queued, and all who wait go together
in the next one. The run is done by one of the callers, so there is no thread to keep or to end.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Feeds = dict[str, NDArray[Any]]
Outputs = list[NDArray[Any]]
Signature = tuple[tuple[str, tuple[int, ...], str], ...]

MAX_WAITING: Final = 64


def get_signature(feeds: Feeds) -> Signature:
    """Return what must be equal for two requests to be stacked: names, shapes but the first."""
    return tuple((name, value.shape[1:], value.dtype.str) for name, value in sorted(feeds.items()))


def count_rows(feeds: Feeds) -> int:
    """Return how many rows `feeds` hold: the first dimension of its inputs; 0 when they differ."""
    rows = {value.shape[0] if value.ndim else 0 for value in feeds.values()}
    return rows.pop() if len(rows) == 1 else 0


def stack_feeds(many: Sequence[Feeds]) -> Feeds:
    """Return the requests' inputs one above the other; all have one signature."""
    if len(many) == 1:
        return many[0]
    return {name: np.concatenate([feeds[name] for feeds in many]) for name in many[0]}


def split_outputs(outputs: Outputs, rows: Sequence[int]) -> list[Outputs]:
    """Return each request's part of `outputs`, views of the rows that are its own.

    Raises:
        ValueError: an output does not have a row for each row of the input.
    """
    if any(not output.ndim or output.shape[0] != sum(rows) for output in outputs):
        raise ValueError("the network does not keep its rows apart")
    ends = np.cumsum(rows).tolist()
    return [
        [output[end - count : end] for output in outputs]
        for end, count in zip(ends, rows, strict=True)
    ]


class _Request:
    """One caller's, from its arrival to its answer. `rows` 0: goes by itself."""

    __slots__ = ("answer", "event", "feeds", "is_leader", "rows", "signature")

    def __init__(self, feeds: Feeds) -> None:
        self.feeds = feeds
        self.rows = count_rows(feeds)
        self.signature = get_signature(feeds)
        self.event = threading.Event()
        self.answer: Outputs | None = None
        self.is_leader = False


class MicroBatcher:
    """Runs what many threads ask for in as few runs as come by themselves. Thread-safe.

    `run` is called with stacked inputs by one thread at a time, but for those that failed together
    or found the queue full: these go by themselves, at once.
    """

    def __init__(
        self, run: Callable[[Feeds], Outputs], max_rows: int, max_waiting: int = MAX_WAITING
    ) -> None:
        self._run = run
        self._max_rows = max_rows
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting: deque[_Request] = deque()
        self._is_busy = False
        self.runs = 0
        self.requests = 0

    def run(self, feeds: Feeds) -> Outputs:
        """Return the outputs for `feeds`; whatever its run raises reaches this caller alone."""
        request = _Request(feeds)
        if not self._join(request):
            return self._run(feeds)
        if not request.is_leader:
            self._wait(request)
        if request.is_leader:
            self._lead(request)
        if request.answer is not None:
            return request.answer
        return self._run(feeds)  # the run in company failed: this one's own failure, or none

    def _join(self, request: _Request) -> bool:
        """Queue `request`, or make it the leader; False when it must go by itself."""
        with self._lock:
            self.requests += 1
            if not self._is_busy:
                self._is_busy = request.is_leader = True
                return True
            if len(self._waiting) >= self._max_waiting:
                return False
            self._waiting.append(request)
            return True

    def _wait(self, request: _Request) -> None:
        try:
            request.event.wait()
        except BaseException:  # Ctrl-C: who is no longer there must not be made the leader
            with self._lock:
                is_queued = request in self._waiting
                if is_queued:
                    self._waiting.remove(request)
            if not is_queued and request.event.wait() and request.is_leader:
                self._hand_over()
            raise

    def _lead(self, leader: _Request) -> None:
        """Run `leader` and who fits to it, then hand over to the next that waits."""
        group = self._gather(leader)
        try:
            self._answer(group)
        finally:
            for request in group[1:]:
                request.event.set()
            self._hand_over()

    def _gather(self, leader: _Request) -> list[_Request]:
        group, rows = [leader], leader.rows
        with self._lock:
            self.runs += 1
            kept: deque[_Request] = deque()
            for request in self._waiting:
                fits = (
                    0 < request.rows <= self._max_rows - rows
                    and request.signature == leader.signature
                )
                if fits and leader.rows:
                    group.append(request)
                    rows += request.rows
                else:
                    kept.append(request)
            self._waiting = kept
        return group

    def _answer(self, group: list[_Request]) -> None:
        if len(group) == 1:
            group[0].answer = self._run(group[0].feeds)
            return
        try:
            outputs = self._run(stack_feeds([request.feeds for request in group]))
            parts = split_outputs(outputs, [request.rows for request in group])
        except Exception:  # noqa: BLE001 - each goes by itself now, and meets its own failure
            return
        for request, part in zip(group, parts, strict=True):
            request.answer = part

    def _hand_over(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_busy = False
                return
            following = self._waiting.popleft()
        following.is_leader = True
        following.event.set()
