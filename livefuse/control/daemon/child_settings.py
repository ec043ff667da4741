"""What a worker takes over of a new configuration while its jobs go on as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from livefuse.config import Config
from livefuse.telemetry import set_up_logging

if TYPE_CHECKING:
    from livefuse.control.api.context import Api
    from livefuse.control.api.perimeter import Perimeter

SETTINGS_PATH: Final = "/v1/worker/config"
"""No address of the API: the daemon passes on none that is not in ROUTES."""


def add_settings_route(app: web.Application, api: Api, perimeter: Perimeter) -> None:
    """Have the daemon tell the worker of `api` a new configuration at `SETTINGS_PATH`."""

    async def take(request: web.Request) -> web.Response:
        take_settings(api, perimeter, msgspec.json.decode(await request.read(), type=Config))
        return web.Response(status=204)

    app.router.add_put(SETTINGS_PATH, take)


def take_settings(api: Api, perimeter: Perimeter, config: Config) -> None:
    """Answer requests by `config` from now on, and judge and place outputs that are added by it."""
    worker = api.manager.worker
    worker.config = msgspec.structs.replace(
        worker.config, access=config.access, record=config.record
    )
    api.config = config
    if config.limits != perimeter.limits:
        perimeter.set_limits(config.limits)
    # The daemon reads what is said here, and tells it in its own form.
    set_up_logging(msgspec.structs.replace(config.log, form="json"))
