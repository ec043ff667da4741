"""Listens, and puts the routes together into an application. Runs on the control loop."""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING, Final

from aiohttp import web

from livefuse import __version__
from livefuse.control.api.binding import build_base_url, prepare_binding
from livefuse.control.api.body import answer
from livefuse.control.api.context import API_KEY, Api
from livefuse.control.api.doorway import SERVER_OPTIONS, Doorway, create_greeter
from livefuse.control.api.guard import create_guard
from livefuse.control.api.key import accept_key
from livefuse.control.api.page import show_file, show_page
from livefuse.control.api.perimeter import Perimeter
from livefuse.control.api.problems import explain_errors
from livefuse.control.api.routes import add_routes
from livefuse.control.api.tracing import Tracing
from livefuse.control.background import call_in_thread
from livefuse.errors import ConfigError
from livefuse.machine.graphics import GraphicsMemory
from livefuse.metrics import create_metrics

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.control.api.binding import Certificate
    from livefuse.control.api.caller import FindCaller
    from livefuse.control.jobs import JobManager

_PORTS_TRIED: Final = 20
# What is no HTTP gets its 400; a stack trace of it for each would let strangers fill the log.
_SILENT: Final = logging.getLogger("livefuse.http")
_SILENT.setLevel(logging.CRITICAL + 1)


class ApiServer:
    """Serves the jobs of one worker on the running loop.

    Without `find_caller` (caller.py) whoever has `key` may all; with an empty one everybody.
    """

    def __init__(
        self, config: Config, manager: JobManager, key: str, find_caller: FindCaller | None = None
    ) -> None:
        self._config = config.http
        self.key = key
        self._find_caller = find_caller or accept_key(key)
        metrics = create_metrics(
            manager.list_measured,
            version=__version__,
            read_gpu_bytes=GraphicsMemory(config.models.device).read,
            read_audit=manager.worker.audit.read_figures,
        )
        self._api = Api(manager, config, metrics, Tracing(config.tracing, __version__))
        self._runner: web.AppRunner | None = None
        self._doorway = Doorway(Perimeter(config.http, config.limits))
        self._certificate: Certificate | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """The address as this machine reaches it."""
        has_tls = self._certificate is not None
        return build_base_url(self._config.host, self.port, has_tls=has_tls)

    def get_url(self, path: str) -> str:
        """Return the whole address of `path`, with the key."""
        return f"{self.base_url}{path}" + (f"?key={self.key}" if self.key else "")

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: the address cannot be listened on, or not like this (binding.py).
        """
        self._certificate = prepare_binding(self._config)
        listener = bind_listener(self._config.host, self._config.port)
        self.port = listener.getsockname()[1]
        self._runner = web.AppRunner(
            create_application(self._api, self._config.host, self._find_caller, self._doorway),
            logger=_SILENT,
            **SERVER_OPTIONS,
        )
        await self._runner.setup()
        if self._runner.server is not None:
            await self._doorway.open(self._runner.server, listener, self._certificate)

    async def close(self) -> None:
        """Send players away and stop listening."""
        if self._runner is not None:
            self._doorway.close()
            await self._runner.cleanup()
            self._runner = None
            await call_in_thread("spans", self._api.tracing.close)


def create_application(
    api: Api, host: str, find_caller: FindCaller, doorway: Doorway
) -> web.Application:
    """Return the application with all routes, for `host` and known callers, behind `doorway`."""
    guard = create_guard(host, find_caller, api.find_owner, doorway.perimeter)
    app = web.Application(
        middlewares=[create_greeter(doorway), api.tracing.trace, explain_errors, guard]
    )
    app[API_KEY] = api
    app.router.add_get("/", show_page)
    app.router.add_get("/web/{path:.+}", show_file)
    app.router.add_get("/v1/openapi.json", _show_description)
    add_routes(app)
    return app


async def _show_description(_request: web.Request) -> web.Response:
    from livefuse.control.api.openapi import create_description  # noqa: PLC0415 - rarely asked for

    return answer(create_description())


def bind_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket at `port`, or at the next free one after it.

    Raises:
        ConfigError: the address is not this machine's, or the port is not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = range(port, min(port + _PORTS_TRIED, 65536)) if port else range(1)
    for candidate in ports:
        try:
            return socket.create_server((host, candidate), family=family)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            # asyncio's words for people who read code stand in brackets behind the system's.
            reason = (error.strerror or "not possible").partition(" (while")[0]
            raise ConfigError(
                f"cannot listen on {host}:{candidate} ({reason})",
                hint="set http.host and http.port to an address of this machine",
            ) from None
    raise ConfigError(
        f"ports {ports.start} to {ports.stop - 1} of {host} are all taken",
        hint="set http.port to a free one, or 0 for any",
    )
