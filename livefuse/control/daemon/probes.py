"""For machines that watch the daemon: metrics of all its jobs, readiness."""

from __future__ import annotations

from aiohttp import web

from livefuse.control.api.problems import NO_STORE, create_problem
from livefuse.control.daemon.context import get_daemon
from livefuse.control.daemon.figures import collect_metrics
from livefuse.metrics import CONTENT_TYPE


async def show_metrics(request: web.Request) -> web.Response:
    """Return the figures of the daemon and of all jobs for Prometheus."""
    body = await collect_metrics(get_daemon(request))
    return web.Response(body=body, headers={**NO_STORE, "Content-Type": CONTENT_TYPE})


async def show_readiness(request: web.Request) -> web.Response:
    """Say whether jobs can be taken: not while livefuse ends, nor before a worker is there."""
    daemon = get_daemon(request)
    if daemon.supervisor.is_draining:
        return create_problem(503, "livefuse is ending", headers={"Retry-After": "10"})
    if not any(worker.is_alive for worker in daemon.pool.workers):
        return create_problem(503, "no worker is ready yet", headers={"Retry-After": "2"})
    return web.Response(text="ready\n", headers=NO_STORE)
