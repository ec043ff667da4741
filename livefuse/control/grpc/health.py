"""grpc.health.v1: whether it serves is what GET /readyz says."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from livefuse.control.http_client import Query
from livefuse.errors import DaemonError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livefuse.control.http_client import HttpClient

SERVICE: Final = "grpc.health.v1.Health"
_READY: Final = Query("GET", "/readyz")
_LOOK_S: Final = 1.0
_PATIENCE_S: Final = 2.0
_OK: Final = 200


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc] # it has no types
    """Open to all, as /readyz is. `max_watchers` at a time."""

    def __init__(self, client: HttpClient, services: tuple[str, ...], max_watchers: int) -> None:
        self._client = client
        self._services = frozenset({"", *services})
        self._places = threading.BoundedSemaphore(max_watchers)
        self._ending = threading.Event()

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401, N802 - grpc's
        """Say whether it serves now."""
        if request.service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        return health_pb2.HealthCheckResponse(status=self._look())

    def Watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: ANN401, N802 - grpc's
        """Say whether it serves, now and whenever that changes."""
        if not self._places.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watch already")
        gone = threading.Event()
        context.add_callback(gone.set)
        try:
            last = None
            while not gone.is_set() and not self._ending.is_set():
                status = self._look() if request.service in self._services else _UNKNOWN
                if status != last:
                    yield health_pb2.HealthCheckResponse(status=status)
                last = status
                gone.wait(_LOOK_S)
        finally:
            self._places.release()

    def end(self) -> None:
        """Send away all who watch, within a second."""
        self._ending.set()

    def _look(self) -> int:
        if self._ending.is_set():
            return _NOT_SERVING
        try:
            answer = self._client.ask(_READY, _PATIENCE_S)
        except DaemonError:
            return _NOT_SERVING
        return _SERVING if answer.status == _OK else _NOT_SERVING


_SERVING: Final[int] = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final[int] = health_pb2.HealthCheckResponse.NOT_SERVING
_UNKNOWN: Final[int] = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
