"""The one event loop on which all WebRTC peers of this process live.

It has a thread of its own, so that neither HTTP nor a busy page can hold up media. It starts with
the first peer and ends with the process.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from concurrent.futures import TimeoutError as CallTimeoutError
from typing import TYPE_CHECKING, Any, Final, TypeVar

from livefuse.errors import JobError
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
CALL_TIMEOUT_S: Final = 10.0


class RtcLoop:
    """A loop in a daemon thread. All methods may be called from any other thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_note_failure)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="livefuse-rtc", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float = CALL_TIMEOUT_S) -> T:
        """Run `work` on the loop and return what it returns or raise what it raises.

        Raises:
            JobError: it took longer than `timeout_s`; it is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except CallTimeoutError:
            future.cancel()
            raise JobError(
                f"WebRTC did not answer within {timeout_s:g} s", hint="try again in a moment"
            ) from None

    def post(self, callback: Callable[..., object], *values: object) -> None:
        """Have `callback` called on the loop soon; returns at once."""
        self._loop.call_soon_threadsafe(callback, *values)

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Let `work` run beside everything else; only from the loop's own thread."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


def _note_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what a task died of: its peer ends by itself, and nobody wants to see a trace."""
    cause = context.get("exception") or context.get("message", "")
    get_logger("rtc").debug("a task failed", cause=f"{type(cause).__name__}: {cause}")


def get_loop() -> RtcLoop:
    """Return the loop of this process, started now if it was not."""
    with _starting:  # two offers may be the first
        return _start_loop()


@functools.cache
def _start_loop() -> RtcLoop:
    # aiortc takes seconds to load on a busy machine: here, in the thread of whoever asked first,
    # and not on the loop, within the time that an answer may take.
    from livefuse.rtc import peer  # noqa: F401, PLC0415 - only where there are peers

    return RtcLoop()


_starting: Final = threading.Lock()
