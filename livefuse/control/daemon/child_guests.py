"""Who has opened a session of WebRTC in a worker, and those whom its daemon sends away.

Media go by UDP, past the daemon: what ends a stream of HTTP whose key opens no more ends no
session. So the worker says with each beat which keys have some, and the daemon which have to go.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from aiohttp import web

from livefuse.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.control.jobs import JobManager
    from livefuse.ingest.whip import WhipIngest
    from livefuse.publish.whep import WhepOutput

GUESTS_PATH: Final = "/v1/worker/guests"
"""No address of the API: the daemon passes on none that is not in ROUTES."""
_WAYS: Final[tuple[Literal["whip", "whep"], ...]] = ("whip", "whep")


def list_guests(manager: JobManager) -> list[str]:
    """Return the keys with sessions in any job; from any thread, returns at once."""
    return sorted(set().union(*(peers.list_guests() for peers in _list_peers(manager))))


def add_guests_route(app: web.Application, manager: JobManager) -> None:
    """Have the daemon send away the keys that it tells at `GUESTS_PATH`."""

    async def send_away(request: web.Request) -> web.Response:
        for key_id in msgspec.json.decode(await request.read(), type=list[str]):
            for peers in _list_peers(manager):
                peers.hang_up(key_id)
        return web.Response(status=204)

    app.router.add_delete(GUESTS_PATH, send_away)


def _list_peers(manager: JobManager) -> Iterator[WhipIngest | WhepOutput]:
    for managed in manager.list_managed():
        job = managed.job
        if job is None or job.wait(0):
            continue
        for way in _WAYS:
            with contextlib.suppress(JobError):  # it is not watched, or its source is no browser
                yield job.get_peers(way)
