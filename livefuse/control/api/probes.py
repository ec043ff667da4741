"""For machines that watch: metrics, health, readiness."""

from __future__ import annotations

import asyncio

from aiohttp import web

from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE, create_problem
from livefuse.errors import JobCapacityError
from livefuse.job.health import READY
from livefuse.metrics import render_metrics


async def show_metrics(request: web.Request) -> web.Response:
    """Return the figures of all jobs for Prometheus."""
    api = get_api(request)
    rendered = await api.figures.ask("metrics", lambda: render_metrics(api.metrics))
    if rendered is None:
        raise JobCapacityError("a job does not answer", hint="GET /v1/jobs tells which")
    body, content_type = rendered
    return web.Response(body=body, headers={**NO_STORE, "Content-Type": content_type})


async def show_health(_request: web.Request) -> web.Response:
    """Say that the process answers."""
    return web.Response(text="ok\n", headers=NO_STORE)


async def show_readiness(request: web.Request) -> web.Response:
    """Say whether a job is on air: not while one loads, nor once it has failed (health.py)."""
    api = get_api(request)
    jobs = [managed.job for managed in api.manager.list_managed()]
    figures = await asyncio.gather(*map(api.figures.collect, jobs))
    ready = any(one is not None and one.health in READY and one.frames_out for one in figures)
    if not ready:
        return create_problem(503, "no job is live yet", "GET /v1/jobs tells how each is")
    return web.Response(text="ready\n", headers=NO_STORE)
