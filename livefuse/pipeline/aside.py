"""Work that must not hold a frame back: in a thread of its own, or at once where order counts."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class InlineExecutor(Executor):
    """Runs work in the caller's thread, so that files and replays repeat to the bit."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:  # noqa: ANN401 - Executor's signature
        """Run `fn` now and return its finished future."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - handed on to whoever asks for the result
            future.set_exception(error)
        return future


def create_aside(*, every_frame: bool) -> Executor:
    """Return where a pipeline's side work runs."""
    if every_frame:
        return InlineExecutor()
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="livefuse-aside")
