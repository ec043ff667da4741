"""A `livefuse.clock.Clock` whose time is virtual; see the package for what that means."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from livefuse.clock import NS_PER_S
from livefuse.virtual.baton import Baton

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from livefuse.virtual.baton import Actor

EPOCH_S: Final = 1_700_000_000.0


class CostModel(Protocol):
    """Says how long work takes."""

    def get_cost_ns(self, work: str, spent_ns: int) -> int:
        """Return the ns that `work` takes now; `spent_ns`: what it really took here and now.

        Called by the actor that did it, in the order of the work.
        """
        ...


class VirtualCondition:
    """A `livefuse.clock.Condition` whose lock is the baton: who runs has it already.

    Whom a notice wakes goes on at once, at the same moment, before the one who gave it: else work
    that costs nothing would fill a ring before its taker had moved.
    """

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._waiters: deque[Actor] = deque()
        self._has_woken = False

    def __enter__(self) -> bool:
        """Do nothing: nobody else runs."""
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Let those go first who have been woken."""
        has_woken, self._has_woken = self._has_woken, False
        actor = self._baton.find_actor()
        if has_woken and actor is not None:
            self._baton.step_back(actor)

    def wait(self, timeout: float | None = None) -> bool:
        """Hand the baton on until notified; False after `timeout` virtual seconds.

        Raises:
            ActorStopped: all is over.
            RuntimeError: the caller is no actor.
        """
        actor = self._baton.get_actor()
        self._waiters.append(actor)
        try:
            return self._baton.wait_turn(actor, None if timeout is None else _to_ns(timeout))
        finally:
            if actor in self._waiters:
                self._waiters.remove(actor)

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> object:
        """Wait until `predicate` holds, at most `timeout` virtual seconds; return its last word."""
        end_ns = self._baton.now_ns + _to_ns(timeout or 0.0)
        while not (result := predicate()):
            if timeout is None:
                self.wait()
            elif (left_ns := end_ns - self._baton.now_ns) > 0:
                self.wait(left_ns / NS_PER_S)
            else:
                break
        return result

    def notify_all(self) -> None:
        """Put all that wait into the line, who came first first."""
        while self._waiters:
            self._baton.wake(self._waiters.popleft())
            self._has_woken = True


class VirtualClock:
    """A clock of its own time.

    `wait`, `sleep_until` and the waits of conditions belong to actors; `run_until_done` and `stop`
    to the thread that made the clock, `start` to both; the rest is for any thread.
    """

    def __init__(
        self, costs: CostModel | None = None, *, start_ns: int = 0, epoch_s: float = EPOCH_S
    ) -> None:
        """Begin at `start_ns`, `epoch_s` on the wall; without `costs` work takes no time."""
        self._costs = costs
        self._start_ns = start_ns
        self._epoch_s = epoch_s
        self._baton = Baton(start_ns)

    def now_ns(self) -> int:
        """Return virtual time in nanoseconds."""
        return self._baton.now_ns

    def epoch_s(self) -> float:
        """Return wall time in epoch seconds: a fixed start and what has passed since."""
        return self._epoch_s + (self._baton.now_ns - self._start_ns) / NS_PER_S

    def wait(self, event: threading.Event, timeout_ns: int) -> bool:
        """Let others run until one of them sets `event`, at most `timeout_ns`.

        Raises:
            ActorStopped: all is over.
            RuntimeError: the caller is no actor.
        """
        actor = self._baton.get_actor()
        if not event.is_set() and timeout_ns > 0:
            self._baton.wait_turn(actor, timeout_ns, event)
        return event.is_set()

    def create_condition(self) -> VirtualCondition:
        """Return what a buffer between two actors waits on."""
        return VirtualCondition(self._baton)

    def charge(self, work: str) -> None:
        """Let the time pass that `work` costs by the model, while others run.

        Nothing passes in a thread that is no actor.
        """
        actor = self._baton.find_actor()
        if actor is None or self._costs is None:
            return
        cost_ns = self._costs.get_cost_ns(work, time.perf_counter_ns() - actor.since_ns)
        if cost_ns > 0:
            self._baton.wait_turn(actor, cost_ns)
        actor.since_ns = time.perf_counter_ns()

    def sleep_until(self, moment_ns: int) -> None:
        """Let others run until `moment_ns`; return at once when that is past.

        Raises:
            ActorStopped: all is over.
            RuntimeError: the caller is no actor.
        """
        actor = self._baton.get_actor()
        if moment_ns > self._baton.now_ns:
            self._baton.wait_turn(actor, moment_ns - self._baton.now_ns)

    @contextlib.contextmanager
    def unmeasured(self) -> Iterator[None]:
        """Keep the real time of what is done within out of the cost that is charged next."""
        started_ns = time.perf_counter_ns()
        try:
            yield
        finally:
            actor = self._baton.find_actor()
            if actor is not None:
                actor.since_ns += time.perf_counter_ns() - started_ns

    def start(self, name: str, run: Callable[[], None], *, is_daemon: bool = False) -> None:
        """Let `run` be an actor: it moves first when its turn comes in `run_until_done`.

        A daemon (a watchdog) is not waited for: it is stopped when all others have ended.
        """
        self._baton.start(name, run, is_daemon=is_daemon)

    def run_until_done(self, until_ns: int | None = None) -> bool:
        """Let the actors run until all have ended; False when it is `until_ns` before that.

        After False it may be called again, or `stop` ends it.

        Raises:
            JobError: all wait for ever; it says who waits where.
            BaseException: what an actor failed of; the others have been stopped.
        """
        return self._baton.run_until_done(until_ns)

    def stop(self) -> None:
        """End all actors: each meets `ActorStopped` where it waits."""
        self._baton.stop()


def _to_ns(timeout_s: float) -> int:
    return round(max(timeout_s, 0.0) * NS_PER_S)
