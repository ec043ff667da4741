"""The API over gRPC: a thin shell around the HTTP API, which is the one implementation.

    livefuse/v1/livefuse.proto   what clients generate their stubs from
    livefuse_pb2                 its messages, generated (tests/unit/control/grpc compares)
    table      which call is which address          messages   messages to JSON and back
    shell      does a call by asking over HTTP      statuses   problems as statuses
    health     grpc.health.v1 by /readyz            limits     few streams of reflection at a time
    server     listens                              pool       threads that hold up no exit
    tls        the certificate of the HTTP API      beside     with an HTTP API on a loop

The packages for it are an extra: nothing here but `start_grpc` may be imported without them.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from livefuse.control.address import parse_daemon_url
from livefuse.control.console import complain, say
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.config import Config, GrpcConfig
    from livefuse.control.grpc.server import GrpcServer


def start_grpc(config: Config, upstream: str) -> GrpcServer:
    """Serve gRPC for the HTTP API at `upstream`, a URL or the path of a unix socket.

    With the certificate of the HTTP API, where it has one. Takes a moment: not for a loop.

    Raises:
        ConfigError: a package is missing, the address cannot be listened on, or keys would go over
            a network unencrypted.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its own log knows nothing of ours
    try:
        server = import_module("livefuse.control.grpc.server")
    except ImportError as error:
        if error.name is not None and error.name.startswith("livefuse"):
            raise
        raise ConfigError(
            f"gRPC needs packages that are not installed ({error.name or error})",
            hint="run  pip install 'livefuse[grpc]'  or set grpc.enabled to false",
        ) from None
    made: GrpcServer = server.GrpcServer(config, parse_daemon_url(upstream))
    return made


def announce_grpc(server: GrpcServer, config: GrpcConfig, *, quiet: bool = False) -> None:
    """Say where gRPC listens, and that it is not where it was to."""
    if config.port and server.port != config.port:
        complain(f"port {config.port} is taken: gRPC uses {server.port}")
    if not quiet:
        say(f"gRPC: {server.address}")
