"""The daemon's address: every route of the API, answered here or by the worker of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from livefuse import __version__
from livefuse.control.api.binding import build_base_url, prepare_binding
from livefuse.control.api.body import answer
from livefuse.control.api.doorway import SERVER_OPTIONS, Doorway, create_greeter
from livefuse.control.api.guard import create_guard
from livefuse.control.api.page import show_file, show_page
from livefuse.control.api.perimeter import Perimeter
from livefuse.control.api.probes import show_health
from livefuse.control.api.problems import explain_errors
from livefuse.control.api.routes import ROUTES, Route, add_routes
from livefuse.control.api.server import bind_listener
from livefuse.control.api.tracing import Tracing
from livefuse.control.background import call_in_thread
from livefuse.control.daemon import changes, events, jobs, probes
from livefuse.control.daemon.again import once
from livefuse.control.daemon.context import DAEMON, Daemon

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

    from livefuse.config import HttpConfig, LimitsConfig
    from livefuse.control.api.binding import Certificate
    from livefuse.control.api.caller import FindCaller

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_JOB: Final = "/v1/jobs/{id}"
OWN: Final[dict[tuple[str, str], Handler]] = {
    ("GET", "/v1/jobs"): jobs.list_jobs,
    ("POST", "/v1/jobs"): once(jobs.create_job),
    ("GET", _JOB): jobs.show_job,
    ("DELETE", _JOB): jobs.delete_job,
    ("PUT", f"{_JOB}/spec"): jobs.submit_job,
    ("POST", f"{_JOB}/start"): once(jobs.start_job),
    ("POST", f"{_JOB}/stop"): once(jobs.stop_job),
    ("GET", f"{_JOB}/status"): jobs.show_status,
    ("GET", f"{_JOB}/events"): events.stream_events,
    ("PATCH", f"{_JOB}/token"): changes.change_token,
    ("PUT", f"{_JOB}/source-face"): changes.set_source_face,
    ("POST", f"{_JOB}/outputs"): once(changes.add_output),
    ("DELETE", f"{_JOB}/outputs/{{output}}"): changes.remove_output,
    ("POST", f"{_JOB}/recording"): once(changes.pass_on),
    ("GET", "/metrics"): probes.show_metrics,
    ("GET", "/healthz"): show_health,
    ("GET", "/readyz"): probes.show_readiness,
}
"""What the daemon knows itself, or has to keep. All else of a job is passed on to its worker."""

_OF_WORKERS: Final = ("503", "504", "507")
"""No worker is there, one does not answer, or what was to be kept cannot be."""


def list_routes() -> tuple[Route, ...]:
    """Return the routes of the API with the handlers of the daemon."""
    return tuple(route._replace(handler=_choose(route)) for route in ROUTES)


def _choose(route: Route) -> Handler:
    own = OWN.get((route.method, route.path))
    if own is not None:
        return own
    return changes.pass_on if route.path.startswith(_JOB) else changes.ask_any


class DaemonServer:
    """Serves on the running loop."""

    def __init__(
        self,
        daemon: Daemon,
        config: HttpConfig,
        find_caller: FindCaller,
        limits: LimitsConfig | None = None,
    ) -> None:
        self._config = config
        self._tracing = Tracing(daemon.config.tracing, __version__, "daemon")
        self._doorway = Doorway(Perimeter(config, limits))
        self._certificate: Certificate | None = None
        self._app = create_application(
            daemon, config.host, find_caller, self._doorway, self._tracing
        )
        self._runner: web.AppRunner | None = None
        self._listener: socket.socket | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """The address as this machine reaches it."""
        has_tls = self._certificate is not None
        return build_base_url(self._config.host, self.port, has_tls=has_tls)

    def bind(self) -> None:
        """Take the address; who connects waits.

        Raises:
            ConfigError: it cannot be listened on, or not like this (binding.py).
        """
        self._certificate = prepare_binding(self._config)
        self._listener = bind_listener(self._config.host, self._config.port)
        self.port = self._listener.getsockname()[1]

    async def start(self) -> None:
        """Answer from now on, at the address that was taken."""
        self._runner = web.AppRunner(
            self._app,
            **SERVER_OPTIONS,
        )
        await self._runner.setup()
        if self._runner.server is not None and self._listener is not None:
            await self._doorway.open(self._runner.server, self._listener, self._certificate)

    def set_limits(self, limits: LimitsConfig) -> None:
        """Ask no more of callers, and no less, than `limits` says from now on."""
        self._doorway.perimeter.set_limits(limits)

    async def close(self) -> None:
        """Send everybody away and stop listening."""
        if self._runner is not None:
            self._doorway.close()
            await self._runner.cleanup()
            self._runner = None
            await call_in_thread("spans", self._tracing.close)


def create_application(
    daemon: Daemon, host: str, find_caller: FindCaller, doorway: Doorway, tracing: Tracing
) -> web.Application:
    """Return the application, for `host` and known callers, behind `doorway`."""
    guard = create_guard(host, find_caller, daemon.find_owner, doorway.perimeter)
    app = web.Application(
        middlewares=[create_greeter(doorway), tracing.trace, explain_errors, guard]
    )
    app[DAEMON] = daemon
    app.router.add_get("/", show_page)
    app.router.add_get("/web/{path:.+}", show_file)
    app.router.add_get("/v1/openapi.json", _show_description)
    add_routes(app, list_routes())
    return app


async def _show_description(_request: web.Request) -> web.Response:
    return answer(describe())


def describe() -> dict[str, Any]:
    """Return the description of the API, with how a daemon can fail besides."""
    from livefuse.control.api.openapi import create_description  # noqa: PLC0415 - rarely asked for

    description = create_description()
    description["info"]["summary"] = "The API of a daemon, whose workers run the jobs."
    for path, operations in description["paths"].items():
        if path.startswith("/v1/"):
            for operation in operations.values():
                problem = operation["responses"]["401"]
                operation["responses"] |= dict.fromkeys(_OF_WORKERS, problem)
    return description
