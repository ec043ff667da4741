"""Jobs: made, listed, submitted, started, stopped, deleted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from livefuse.control.api.body import MAX_PICTURED_BYTES, answer, read_json
from livefuse.control.api.caller import get_caller, sees
from livefuse.control.api.context import get_api
from livefuse.control.api.hiding import create_spec_view, hide_statistics, hide_text
from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.views import JobList, JobView, NewJob, Spec, create_links
from livefuse.errors import ConfigError, JobCapacityError, JobError

if TYPE_CHECKING:
    from livefuse.control.api.caller import Caller
    from livefuse.control.managed import ManagedJob
    from livefuse.telemetry import Statistics


async def list_jobs(request: web.Request) -> web.Response:
    """List the jobs that the caller sees."""
    api, caller = get_api(request), get_caller(request)
    jobs = [
        managed
        for managed in api.manager.list_managed()
        if sees(caller, managed.owner, is_running=managed.phase == "running")
    ]
    figures = await asyncio.gather(*(api.figures.collect(managed.job) for managed in jobs))
    views = [_create_view(caller, *each) for each in zip(jobs, figures, strict=True)]
    return answer(JobList(views))


async def create_job(request: web.Request) -> web.Response:
    """Make a job; with a spec submit it, and start it if asked to."""
    api = get_api(request)
    wish = await read_json(request, NewJob, MAX_PICTURED_BYTES)
    if wish.start and wish.spec is None:
        raise ConfigError("a job without a spec cannot be started", hint="send a spec")
    # In one go: a client that hangs up meanwhile leaves nothing half done.
    owner = get_caller(request).key_id
    managed = await api.run("create", lambda: api.manager.create_by_wish(wish, owner))
    where = {"Location": f"/v1/jobs/{managed.job_id}"}
    return answer(await _view(request, managed), 201, where)


async def show_job(request: web.Request) -> web.Response:
    """Show a job."""
    api = get_api(request)
    return answer(await _view(request, api.get_managed(request)))


async def submit_job(request: web.Request) -> web.Response:
    """Say what a job is to do. It must not be running."""
    api = get_api(request)
    managed = api.get_managed(request)
    spec = await read_json(request, Spec, MAX_PICTURED_BYTES)
    await api.run("submit", lambda: api.manager.submit(managed.job_id, spec))
    return answer(await _view(request, managed))


async def start_job(request: web.Request) -> web.Response:
    """Start a job; what becomes of it is in its state."""
    api = get_api(request)
    managed = api.get_managed(request)
    await api.run("start", lambda: api.manager.start(managed.job_id))
    return answer(await _view(request, managed))


async def stop_job(request: web.Request) -> web.Response:
    """Stop a job in order."""
    api = get_api(request)
    managed = api.get_managed(request)
    await api.run("stop", lambda: api.manager.stop_job(managed.job_id))
    return answer(await _view(request, managed))


async def delete_job(request: web.Request) -> web.Response:
    """Stop a job and forget it."""
    api = get_api(request)
    job_id = api.get_managed(request).job_id
    await api.run("delete", lambda: api.manager.delete(job_id))
    await api.tracing.flush()  # who has no job any more may be ended next
    return web.Response(status=204, headers=NO_STORE)


async def show_status(request: web.Request) -> web.Response:
    """Return the figures of a job that was started."""
    api = get_api(request)
    managed = api.get_managed(request)
    if managed.job is None:
        raise JobError(f"the job {managed.job_id} has not been started", hint="start it first")
    figures = await api.figures.collect(managed.job)
    if figures is None:
        raise JobCapacityError(f"the job {managed.job_id} does not answer", hint="look at the log")
    return answer(hide_statistics(get_caller(request), figures))


async def _view(request: web.Request, managed: ManagedJob) -> JobView:
    figures = await get_api(request).figures.collect(managed.job)
    return _create_view(get_caller(request), managed, figures)


def _create_view(caller: Caller, managed: ManagedJob, figures: Statistics | None) -> JobView:
    return JobView(
        id=managed.job_id,
        state=managed.phase,
        error=hide_text(caller, managed.error),
        error_type=managed.error_type,
        spec=create_spec_view(caller, managed.spec) if managed.spec is not None else None,
        statistics=hide_statistics(caller, figures),
        links=create_links(managed.job_id),
    )
