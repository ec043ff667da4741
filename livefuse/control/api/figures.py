"""Figures are collected in a thread, once for all who ask at the same time, with little patience.

What hangs in a job can hold its figures up; the loop, the other jobs and whoever lists them go on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from livefuse.control.background import call_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from livefuse.job.job import Job
    from livefuse.telemetry import Statistics

T = TypeVar("T")
PATIENCE_S: Final = 1.0


class Figures:
    """Asked on the loop. At most one thread for each job, or each other thing asked for."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, asyncio.Future[Any]] = {}

    async def collect(self, job: Job | None) -> Statistics | None:
        """Return the figures of `job`, None when there is none or it does not answer in time."""
        return await self.ask(job, job.statistics) if job is not None else None

    async def ask(self, key: Hashable, function: Callable[[], T]) -> T | None:
        """Return what `function` returns, None when not within a second.

        For the same `key` it is not called twice at a time.
        """
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = call_in_thread("figures", function)
            asked.add_done_callback(lambda done: self._forget(key, done))
        done, _ = await asyncio.wait({asked}, timeout=PATIENCE_S)
        result: T | None = asked.result() if done else None
        return result

    def _forget(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        del self._asked[key]
        if not done.cancelled():
            done.exception()  # those who asked may have gone: nobody is to be told of it then
