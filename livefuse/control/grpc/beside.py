"""gRPC beside an HTTP API that runs on the loop."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from livefuse.control.background import call_in_thread
from livefuse.control.grpc import announce_grpc, start_grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from livefuse.config import Config


@contextlib.asynccontextmanager
async def serve_grpc(config: Config, upstream: str) -> AsyncIterator[None]:
    """Serve gRPC for the HTTP API at `upstream` meanwhile, if the configuration asks for it.

    Raises:
        ConfigError: as `start_grpc`.
    """
    if not config.grpc.enabled:
        yield
        return
    server = await call_in_thread("grpc", lambda: start_grpc(config, upstream))
    try:
        announce_grpc(server, config.grpc)
        yield
    finally:
        await call_in_thread("grpc", server.close)
