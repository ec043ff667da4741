"""What every handler is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aiohttp import web

from livefuse.config import TracingConfig
from livefuse.control.api.figures import Figures
from livefuse.control.api.shares import Places
from livefuse.control.api.tracing import Tracing
from livefuse.control.background import call_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from prometheus_client import CollectorRegistry

    from livefuse.config import Config
    from livefuse.control.jobs import JobManager
    from livefuse.control.managed import ManagedJob
    from livefuse.job.job import Job

    T = TypeVar("T")

_PLAYERS: Final = (
    "players are watching and no more are let in",
    "raise http.max_viewers",
)
_WATCHERS: Final = ("pages are watching", "close one, or raise limits.event_streams")


@dataclass(slots=True)
class Api:
    """The worker's jobs, and what is shared by all requests. Used on the control loop.

    `players` and `watchers` are the places of those who take a stream or events; `uploads` counts
    those who send a picture now.
    """

    manager: JobManager
    config: Config
    metrics: CollectorRegistry
    tracing: Tracing = field(default_factory=lambda: Tracing(TracingConfig(), ""))
    players: Places = field(default_factory=lambda: Places(*_PLAYERS))
    watchers: Places = field(default_factory=lambda: Places(*_WATCHERS))
    uploads: int = 0
    figures: Figures = field(default_factory=Figures)

    def get_managed(self, request: web.Request) -> ManagedJob:
        """Return the job that the path names.

        Raises:
            JobNotFoundError: there is none.
        """
        return self.manager.get(request.match_info["id"])

    def get_job(self, request: web.Request) -> Job:
        """Return the running job that the path names.

        Raises:
            JobNotFoundError: there is none.
            JobError: it is not running.
        """
        return self.manager.get_running(request.match_info["id"])

    def find_owner(self, job_id: str) -> str | None:
        """Return the key that made the job, None when there is no such job."""
        return self.manager.find_owner(job_id)

    async def run(self, name: str, function: Callable[[], T]) -> T:
        """Do what takes time in a thread of its own."""
        with self.tracing.span(name):
            return await call_in_thread(name, function)


API_KEY: web.AppKey[Api] = web.AppKey("api", Api)


def get_api(request: web.Request) -> Api:
    """Return the context of the application that `request` came to."""
    return request.app[API_KEY]
