"""The outputs of a running job: listed, added, removed."""

from __future__ import annotations

from aiohttp import web

from livefuse.control.api.body import answer, read_json
from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.views import NewOutput, OutputList
from livefuse.control.changes import remove_output as remove


async def list_outputs(request: web.Request) -> web.Response:
    """List the outputs of a job."""
    job = get_api(request).get_job(request)
    return answer(OutputList(job.list_outputs()))


async def add_output(request: web.Request) -> web.Response:
    """Add a target to a running job."""
    api = get_api(request)
    job = api.get_job(request)
    wish = await read_json(request, NewOutput)
    status = await api.run("output", lambda: api.manager.add_output(job, wish.url))
    where = {"Location": f"/v1/jobs/{job.job_id}/outputs/{status.id}"}
    return answer(status, 201, where)


async def remove_output(request: web.Request) -> web.Response:
    """Close a target of a running job; the others do not notice."""
    api = get_api(request)
    job = api.get_job(request)
    name = request.match_info["output"]
    await api.run("output", lambda: remove(api.manager, job, name))
    return web.Response(status=204, headers=NO_STORE)
