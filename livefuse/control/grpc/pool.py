"""The threads that calls run in. Daemons: one that waits for a stream holds up no exit."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")
_Task = tuple["Future[Any]", "Callable[[], Any]"]
_JOIN_S = 1.0


class DaemonPool(Executor):
    """`size` threads, begun one by one as they are needed.

    What waits for one is bounded by the server (`maximum_concurrent_rpcs`).
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._tasks: deque[_Task] = deque()
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._is_over = False
        self._changed = threading.Condition()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` as soon as a thread is free.

        Raises:
            RuntimeError: the pool has been shut down.
        """
        future: Future[T] = Future()
        with self._changed:
            if self._is_over:
                raise RuntimeError("the pool has been shut down")
            self._tasks.append((future, lambda: fn(*args, **kwargs)))
            if len(self._tasks) > self._waiting and len(self._threads) < self._size:
                thread = threading.Thread(target=self._work, name="livefuse-grpc", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return future

    def shutdown(
        self,
        wait: bool = True,  # noqa: FBT001, FBT002 - as Executor has it
        *,
        cancel_futures: bool = False,
    ) -> None:
        """Take no more; with `wait` until the threads have ended, a second each at most."""
        with self._changed:
            self._is_over = True
            cancelled = list(self._tasks) if cancel_futures else []
            if cancel_futures:
                self._tasks.clear()
            self._changed.notify_all()
        for future, _ in cancelled:
            future.cancel()
        for thread in self._threads if wait else ():
            thread.join(_JOIN_S)

    def _work(self) -> None:
        while (task := self._take()) is not None:
            future, function = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - handed to the one who asked
                future.set_exception(error)
            del task, future, function  # what a call held goes with it, not with the next one

    def _take(self) -> _Task | None:
        """Wait for the next task; None: there will be none."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: self._tasks or self._is_over)
            self._waiting -= 1
            return self._tasks.popleft() if self._tasks else None
