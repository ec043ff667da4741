"""Jobs: made, listed, submitted, started, stopped, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from livefuse.control.api.body import answer, read_json
from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE
from livefuse.control.api.views import JobList, JobView, Links, NewJob, Spec, SpecView
from livefuse.errors import ConfigError
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from livefuse.control.jobs import ManagedJob
    from livefuse.spec import JobSpec


async def list_jobs(request: web.Request) -> web.Response:
    """List the jobs of this worker."""
    return answer(
        JobList([create_job_view(job) for job in get_api(request).manager.list_managed()])
    )


async def create_job(request: web.Request) -> web.Response:
    """Make a job; with a spec submit it, and start it if asked to."""
    api = get_api(request)
    wish = await read_json(request, NewJob)
    if wish.start and wish.spec is None:
        raise ConfigError("a job without a spec cannot be started", hint="send a spec")
    managed = api.manager.create(wish.id)
    if wish.spec is not None:
        spec = wish.spec
        try:
            await api.run("submit", lambda: api.manager.submit(managed.job_id, spec))
            if wish.start:
                await api.run("start", lambda: api.manager.start(managed.job_id))
        except BaseException:
            api.manager.delete(managed.job_id)  # a job that cannot be is not left behind as a draft
            raise
    where = {"Location": f"/v1/jobs/{managed.job_id}"}
    return answer(create_job_view(managed), 201, where)


async def show_job(request: web.Request) -> web.Response:
    """Show a job."""
    return answer(create_job_view(get_api(request).get_managed(request)))


async def submit_job(request: web.Request) -> web.Response:
    """Say what a job is to do. It must not be running."""
    api = get_api(request)
    managed = api.get_managed(request)
    spec = await read_json(request, Spec)
    await api.run("submit", lambda: api.manager.submit(managed.job_id, spec))
    return answer(create_job_view(managed))


async def start_job(request: web.Request) -> web.Response:
    """Start a job; what becomes of it is in its state."""
    api = get_api(request)
    managed = api.get_managed(request)
    await api.run("start", lambda: api.manager.start(managed.job_id))
    return answer(create_job_view(managed))


async def stop_job(request: web.Request) -> web.Response:
    """Stop a job in order."""
    api = get_api(request)
    managed = api.get_managed(request)
    await api.run("stop", lambda: api.manager.stop_job(managed.job_id))
    return answer(create_job_view(managed))


async def delete_job(request: web.Request) -> web.Response:
    """Stop a job and forget it."""
    api = get_api(request)
    job_id = api.get_managed(request).job_id
    await api.run("delete", lambda: api.manager.delete(job_id))
    return web.Response(status=204, headers=NO_STORE)


async def show_status(request: web.Request) -> web.Response:
    """Return the figures of a job that was started."""
    return answer(get_api(request).manager.get_status(request.match_info["id"]))


def create_job_view(managed: ManagedJob) -> JobView:
    """Return what may be seen of a job."""
    base = f"/v1/jobs/{managed.job_id}"
    return JobView(
        id=managed.job_id,
        state=managed.phase,
        error=managed.error,
        spec=_create_spec_view(managed.spec) if managed.spec is not None else None,
        statistics=managed.job.statistics() if managed.job is not None else None,
        links=Links(
            flv=f"{base}/live.flv",
            ts=f"{base}/live.ts",
            snapshot=f"{base}/snapshot.jpg",
            whip=f"{base}/whip",
            whep=f"{base}/whep",
            events=f"{base}/events",
        ),
    )


def _create_spec_view(spec: JobSpec) -> SpecView:
    return SpecView(
        source=redact_url(spec.source),
        targets=tuple(map(redact_url, spec.targets)),
        operations=spec.operations,
        source_face=spec.source_face,
        parameters=spec.parameters,
        mode=spec.mode,
    )
