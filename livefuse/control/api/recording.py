"""The last seconds of a job's input, written down for a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livefuse.control.api.body import answer
from livefuse.control.api.context import get_api
from livefuse.control.api.views import RecordingView
from livefuse.control.changes import write_recording as write

if TYPE_CHECKING:
    from aiohttp import web


async def write_recording(request: web.Request) -> web.Response:
    """Write what is kept of the input (replay.keep_s) into the folder of recordings."""
    api = get_api(request)
    job = api.get_job(request)
    path = await api.run("recording", lambda: write(api.manager, job))
    return answer(RecordingView(str(path)), 201)
