"""Reflection is open to all, as the description of what is public anyway: few at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE_S: Final = 20.0


class StreamLimit(grpc.ServerInterceptor):  # type: ignore[misc] # grpc has no types
    """Lets `places` streams of one service run at a time, each for some seconds."""

    def __init__(self, service: str, places: int) -> None:
        self._prefix = f"/{service}/"
        self._places = threading.BoundedSemaphore(places)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Return the handler, with a limit if it is the service's."""
        handler = continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(self._prefix):
            return handler
        behaviour = handler.stream_stream
        if behaviour is None:
            return handler

        def limited(requests: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: ANN401 - any message
            if not self._places.acquire(blocking=False):
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many ask already")
            late = threading.Timer(_PATIENCE_S, context.cancel)
            late.daemon = True
            late.start()
            try:
                yield from behaviour(requests, context)
            finally:
                late.cancel()
                self._places.release()

        return grpc.stream_stream_rpc_method_handler(
            limited,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
