"""The threads that calls run in. Daemons: one that waits for a stream holds up no exit."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")
_Task = tuple["Future[Any]", "Callable[[], Any]"]


class DaemonPool(Executor):
    """`size` threads, begun one by one as they are needed.

    What waits for one is bounded by the server (`maximum_concurrent_rpcs`).
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_over = False
        self._lock = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` as soon as a thread is free.

        Raises:
            RuntimeError: the pool has been shut down.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError("the pool has been shut down")
            self._tasks.put((future, lambda: fn(*args, **kwargs)))
            if self._tasks.qsize() > self._idle and len(self._threads) < self._size:
                thread = threading.Thread(target=self._work, name="livefuse-grpc", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(
        self,
        wait: bool = True,  # noqa: FBT001, FBT002 - as Executor has it
        *,
        cancel_futures: bool = False,
    ) -> None:
        """Take no more; with `wait` until the threads have ended, a second at most."""
        with self._lock:
            self._is_over = True
            threads = self._threads.copy()
            while cancel_futures and not self._tasks.empty():
                task = self._tasks.get()
                if task is not None:
                    task[0].cancel()
            for _ in threads:
                self._tasks.put(None)
        if wait:
            for thread in threads:
                thread.join(1.0)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            task = self._tasks.get()
            with self._lock:
                self._idle -= 1
            if task is None:
                return
            future, function = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - handed to the one who asked
                future.set_exception(error)
