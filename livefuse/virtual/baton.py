"""Threads that run one at a time, and the time that jumps to whoever is due next."""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_MAX_TURNS: Final = 200_000  # without time passing: somebody asks again and again for what is past
_JOIN_S: Final = 2.0


class ActorStopped(BaseException):
    """Raised in an actor that waits when all is over; it passes every `except Exception`."""


@dataclass(slots=True, eq=False)
class Actor:
    """A thread. `turn` counts its waits, so that a timer of a wait that is over does nothing.

    `since_ns` is the real time (perf_counter) at which it got the baton.
    """

    name: str
    is_daemon: bool
    gate: threading.Lock = field(default_factory=threading.Lock)
    is_waiting: bool = False
    was_notified: bool = False
    turn: int = 0
    since_ns: int = 0
    thread: threading.Thread | None = None


class Baton:
    """The actors, their line, and the time. The thread that made it starts and ends them.

    All that is kept here is touched by the holder of the baton only, so it needs no lock; the
    owner holds it until `run_until_done` and after.
    """

    def __init__(self, start_ns: int) -> None:
        self.now_ns = start_ns
        self._alive: dict[Actor, None] = {}  # in the order of their start
        self._threads: list[threading.Thread] = []
        self._by_thread: dict[int, Actor] = {}
        self._ready: deque[Actor] = deque()
        self._timers: list[tuple[int, int, int, Actor]] = []
        self._events: dict[Actor, threading.Event] = {}
        self._home = threading.Lock()
        self._home.acquire()
        self._order = self._turns = 0
        self._until_ns: int | None = None
        self._is_stopping = self._is_out = False
        self._error: BaseException | None = None

    # Up and down: the owner; `start` also an actor.

    def start(self, name: str, run: Callable[[], None], *, is_daemon: bool) -> None:
        """Put an actor that will `run` at the end of the line."""
        actor = Actor(name, is_daemon)
        actor.gate.acquire()
        self._alive[actor] = None
        self._ready.append(actor)
        actor.thread = threading.Thread(
            target=self._live, args=(actor, run), name=f"livefuse-virtual-{name}", daemon=True
        )
        self._threads.append(actor.thread)
        actor.thread.start()

    def run_until_done(self, until_ns: int | None) -> bool:
        """Let the actors run; see `VirtualClock.run_until_done`."""
        self._until_ns = until_ns
        try:
            self._hand_over(self._choose())
            self._home.acquire()
        except BaseException:
            self._is_stopping = True  # a signal: the one that runs has the baton still
            self._is_out = not self._home.acquire(timeout=_JOIN_S)
            raise
        if self._error is None and self._has_work():
            if until_ns is not None and self.now_ns >= until_ns:
                return False
            self._error = JobError(
                f"all threads wait for one another: {self._describe_all()}",
                hint="please report this fault",
            )
        self.stop()
        if self._error is not None:
            raise self._error
        return True

    def stop(self) -> None:
        """End all actors: each meets `ActorStopped` where it waits."""
        self._is_stopping = True
        if self._is_out:
            self._home.acquire(timeout=_JOIN_S)  # who is busy brings it when that is done
        elif self._alive:
            self._hand_over(self._choose())
            self._home.acquire()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self._threads.clear()

    # The holder of the baton.

    def find_actor(self) -> Actor | None:
        """Return the calling actor, None when the calling thread is none."""
        return self._by_thread.get(threading.get_ident())

    def get_actor(self) -> Actor:
        """Return the calling actor.

        Raises:
            RuntimeError: the calling thread is none.
        """
        actor = self.find_actor()
        if actor is None:
            raise RuntimeError("only an actor can wait in virtual time: see VirtualClock.start")
        return actor

    def wait_turn(
        self, actor: Actor, timeout_ns: int | None, event: threading.Event | None = None
    ) -> bool:
        """Hand the baton on until `wake`, or `event`, or for `timeout_ns`; False: the last.

        Raises:
            ActorStopped: all is over.
        """
        if self._is_stopping:
            raise ActorStopped
        actor.is_waiting, actor.was_notified = True, False
        actor.turn += 1
        if event is not None:
            self._events[actor] = event
        if timeout_ns is not None:
            self._order += 1
            due_ns = self.now_ns + timeout_ns
            heapq.heappush(self._timers, (due_ns, self._order, actor.turn, actor))
        self._switch(actor)
        actor.since_ns = time.perf_counter_ns()
        return actor.was_notified

    def step_back(self, actor: Actor) -> None:
        """Let those who are in the line go first; no time passes.

        Raises:
            ActorStopped: all is over.
        """
        if not self._ready or self._is_stopping:
            return
        spent_ns = time.perf_counter_ns() - actor.since_ns
        self._ready.append(actor)
        self._switch(actor)
        actor.since_ns = time.perf_counter_ns() - spent_ns

    def wake(self, actor: Actor, *, is_notified: bool = True) -> None:
        """Put an actor that waits into the line."""
        if actor.is_waiting:
            actor.is_waiting, actor.was_notified = False, is_notified
            self._events.pop(actor, None)
            self._ready.append(actor)

    # The line.

    def _switch(self, actor: Actor) -> None:
        """Hand the baton to who is next, and return when `actor` has it again."""
        chosen = self._choose()
        if chosen is not actor:
            self._hand_over(chosen)
            actor.gate.acquire()
        if self._is_stopping:
            raise ActorStopped

    def _choose(self) -> Actor | None:
        """Return who is next; None: nobody can go on, or should."""
        if not self._is_stopping:
            self._look_at_events()
            if not self._ready and self._has_work():
                self._advance()
            self._count_turn()
        if self._is_stopping:
            return next(iter(self._alive), None)
        return self._ready.popleft() if self._ready and self._has_work() else None

    def _look_at_events(self) -> None:
        for actor, event in list(self._events.items()):
            if event.is_set():
                self.wake(actor)

    def _advance(self) -> None:
        """Go to the earliest moment that somebody waits for."""
        while self._timers and not _is_valid(self._timers[0]):
            heapq.heappop(self._timers)
        until_ns = self._until_ns
        if until_ns is not None and (not self._timers or self._timers[0][0] > until_ns):
            self.now_ns = max(self.now_ns, until_ns)
            return
        if self._timers and self._timers[0][0] > self.now_ns:
            self.now_ns = self._timers[0][0]
            self._turns = 0
        while self._timers and self._timers[0][0] <= self.now_ns:
            timer = heapq.heappop(self._timers)
            if _is_valid(timer):
                self.wake(timer[3], is_notified=False)

    def _count_turn(self) -> None:
        self._turns += 1
        if self._turns > _MAX_TURNS:
            self._error = JobError(
                f"no time passes any more: {self._describe_all()}", hint="please report this fault"
            )
            self._is_stopping = True

    def _has_work(self) -> bool:
        return any(not actor.is_daemon for actor in self._alive)

    def _hand_over(self, actor: Actor | None) -> None:
        (self._home if actor is None else actor.gate).release()

    def _live(self, actor: Actor, run: Callable[[], None]) -> None:
        """Be an actor, from its first turn to its end."""
        actor.gate.acquire()
        self._by_thread[threading.get_ident()] = actor
        try:
            if not self._is_stopping:
                actor.since_ns = time.perf_counter_ns()
                run()
        except ActorStopped:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again in run_until_done
            self._error = self._error or error
            self._is_stopping = True
        finally:
            del self._by_thread[threading.get_ident()], self._alive[actor]
            self._hand_over(self._choose())

    def _describe_all(self) -> str:
        """Return where each actor is, as `decode in put (ring.py:81)`."""
        frames = sys._current_frames()  # noqa: SLF001 - documented, and the only way to see it
        return ", ".join(
            f"{actor.name} in {_find_place(frames.get(actor.thread.ident or 0))}"
            for actor in self._alive
            if actor.thread is not None
        )


def _is_valid(timer: tuple[int, int, int, Actor]) -> bool:
    actor = timer[3]
    return actor.is_waiting and actor.turn == timer[2]


def _find_place(frame: FrameType | None) -> str:
    """Return the innermost function outside of this package."""
    here = Path(__file__).parent
    while frame is not None and Path(frame.f_code.co_filename).parent == here:
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == threading.__file__:
        return "its first turn"
    return f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"
