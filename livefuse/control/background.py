"""Blocking calls beside the event loop, and the signals that end a run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import threading
from typing import TYPE_CHECKING, Final, TypeVar

from livefuse.control.console import complain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
STOPPED_AT_ONCE: Final = 128 + signal.SIGINT


def call_in_thread(name: str, function: Callable[[], T]) -> asyncio.Future[T]:
    """Run `function` in a daemon thread; unlike an executor's, it never holds up the exit.

    What the caller's context says, such as who acts, holds in the thread too.
    """
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type] # no error, so it is a T

    def work() -> None:
        result, caught = None, None
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - handed to the one who waits
            caught = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, result, caught)

    threading.Thread(target=work, name=f"livefuse-{name}", daemon=True).start()
    return future


@contextlib.contextmanager
def catch_signals(
    on_user: Callable[[], None] | None = None,
    *,
    on_hangup: Callable[[], None] | None = None,
) -> Iterator[asyncio.Future[str]]:
    """Give a future that SIGINT, SIGTERM or SIGHUP fulfils with its name; a second ends at once.

    SIGHUP, that the terminal was closed, is left alone where somebody (nohup) has it ignored.
    With `on_hangup` it calls that on the loop, and ends nothing; SIGUSR1 calls `on_user` so.
    """
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()

    def handle(number: signal.Signals) -> None:
        if stop.done():
            complain("stopped at once")
            os._exit(STOPPED_AT_ONCE)
        stop.set_result(number.name)

    caught = [signal.SIGINT, signal.SIGTERM]
    if on_hangup is None and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        caught.append(signal.SIGHUP)
    for number in caught:
        loop.add_signal_handler(number, handle, number)
    for number, call in ((signal.SIGUSR1, on_user), (signal.SIGHUP, on_hangup)):
        if call is not None:
            loop.add_signal_handler(number, call)
            caught.append(number)
    try:
        yield stop
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
