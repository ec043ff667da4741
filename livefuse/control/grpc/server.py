"""Listens for gRPC. Its threads ask the HTTP API; the control loop is not touched."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Final

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from livefuse.control.grpc import health
from livefuse.control.grpc.health import HealthServicer
from livefuse.control.grpc.limits import StreamLimit
from livefuse.control.grpc.pool import DaemonPool
from livefuse.control.grpc.shell import Shell
from livefuse.control.grpc.table import CALLS, PACKAGE
from livefuse.control.grpc.tls import prepare_tls
from livefuse.control.http_client import HttpClient
from livefuse.errors import ConfigError
from livefuse.safety.picture import MAX_PICTURE_BYTES

if TYPE_CHECKING:
    from livefuse.config import Config, GrpcConfig
    from livefuse.control.address import Address
    from livefuse.control.grpc.tls import TlsFiles

_PORTS_TRIED: Final = 20
_WAITING: Final = 2  # so many calls wait for each that is done; more are refused
_MAX_MESSAGE_BYTES: Final = MAX_PICTURE_BYTES + 64 * 1024
_OPTIONS: Final = (
    # Two servers on one port would share its calls between them.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 64),
    # A peer that went without a word is noticed within 30 s, one that pings for sport is sent away.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.max_connection_idle_ms", 300_000),
)


class GrpcServer:
    """Listens from its making until `close`. Methods may be called from any thread but a loop's.

    Raises:
        ConfigError: the address or the certificate cannot be used.
    """

    def __init__(self, tree: Config, upstream: Address) -> None:
        config, tls = tree.grpc, prepare_tls(tree)
        certificate = tls.certificate if tls is not None else None
        self._client = HttpClient(upstream, certificate=certificate, max_idle=config.max_workers)
        streams = config.max_workers // 2
        few = max(config.max_workers // 8, 1)
        services = tuple(sorted({f"{PACKAGE}.{c.name.partition('/')[0]}" for c in CALLS}))
        self._shell = Shell(self._client, streams)
        self._health = HealthServicer(self._client, services, few)
        self._pool = DaemonPool(config.max_workers)
        self._server = grpc.server(
            self._pool,
            handlers=self._shell.create_handlers(),
            interceptors=[StreamLimit(reflection.SERVICE_NAME, few)],
            options=_OPTIONS,
            maximum_concurrent_rpcs=config.max_workers * (1 + _WAITING),
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (*services, health.SERVICE, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        self._host = f"[{config.host}]" if ":" in config.host else config.host
        self.port = self._listen(config, tls)
        self._server.start()

    @property
    def address(self) -> str:
        """What a client dials."""
        return f"{self._host}:{self.port}"

    def close(self, grace_s: float = 2.0) -> None:
        """Send watchers away, let calls come to their end within `grace_s`, stop listening."""
        stopped = self._server.stop(grace_s)
        self._health.end()
        self._shell.end_streams()
        stopped.wait(grace_s + 1.0)
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def _listen(self, config: GrpcConfig, tls: TlsFiles | None) -> int:
        credentials = tls.create_credentials() if tls is not None else None
        host = self._host
        for port in _list_ports(config.port):
            if port and not _is_free(config.host, port):
                continue
            try:
                if credentials is None:
                    return int(self._server.add_insecure_port(f"{host}:{port}"))
                return int(self._server.add_secure_port(f"{host}:{port}", credentials))
            except RuntimeError:  # its text is about file descriptors
                if not port:
                    break
        raise ConfigError(
            f"gRPC cannot listen on {config.host}:{config.port}",
            hint="set grpc.host and grpc.port to an address of this machine, port 0 for any",
        )


def _list_ports(first: int) -> range:
    return range(first, min(first + _PORTS_TRIED, 65536)) if first else range(1)


def _is_free(host: str, port: int) -> bool:
    """Say whether nobody listens there; what else is wrong is found by listening."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True
