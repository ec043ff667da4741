"""For machines that watch: metrics, health, readiness."""

from __future__ import annotations

from aiohttp import web

from livefuse.control.api.context import get_api
from livefuse.control.api.problems import NO_STORE
from livefuse.health import READY
from livefuse.metrics import render_metrics


async def show_metrics(request: web.Request) -> web.Response:
    """Return the figures of all jobs for Prometheus."""
    body, content_type = render_metrics(get_api(request).metrics)
    return web.Response(body=body, headers={**NO_STORE, "Content-Type": content_type})


async def show_health(_request: web.Request) -> web.Response:
    """Say that the process answers."""
    return web.Response(text="ok\n", headers=NO_STORE)


async def show_readiness(request: web.Request) -> web.Response:
    """Say whether a job is on air: not while one loads, nor once it has failed (health.py)."""
    running = [m.job for m in get_api(request).manager.list_managed() if m.job is not None]
    stats = [job.statistics() for job in running]
    ready = any(s.health in READY and s.frames_out for s in stats)
    text = "ready\n" if ready else "no job is live yet\n"
    return web.Response(text=text, status=200 if ready else 503, headers=NO_STORE)
