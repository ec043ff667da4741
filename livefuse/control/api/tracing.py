"""What is asked for over HTTP as spans (OpenTelemetry), for whoever collects them: an extra.

Each request is a span, named by its route and child of the caller's (`traceparent`), and what it
does in a thread is one below it. They go to `tracing.endpoint` (OTLP over HTTP) and nowhere else,
from a thread of their own; a collector that does not answer costs spans, nothing more. Streams, a
span without an end, are left out.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from aiohttp import web

from livefuse.errors import ConfigError
from livefuse.redact import redact_text
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from livefuse.config import TracingConfig

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_ENDLESS: Final = ("/events", "/live.{kind}")
_SERVER_FAULT: Final = 500
_TIMEOUT_S: Final = 3
_FLUSH_MS: Final = 1000
_TELL_EVERY_S: Final = 60.0


class Tracing:
    """Makes spans. Used on the control loop; without an endpoint it does nothing."""

    def __init__(self, config: TracingConfig, version: str) -> None:
        """Take where spans go.

        Raises:
            ConfigError: the packages of the extra `otel` are missing.
        """
        self._provider = None
        if not config.endpoint:
            return
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
                OTLPSpanExporter,
            )
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra
            from opentelemetry.sdk.trace.sampling import (  # noqa: PLC0415 - an extra
                ParentBased,
                TraceIdRatioBased,
            )
        except ImportError:
            raise ConfigError(
                "tracing.endpoint is set and the packages for it are missing",
                hint="install livefuse[otel], or leave it empty",
            ) from None
        _hear_complaints()
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(config.sample_share)),
            resource=Resource.create({"service.name": "livefuse", "service.version": version}),
        )
        exporter = OTLPSpanExporter(config.endpoint, timeout=_TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("livefuse", version)

    def span(self, name: str) -> AbstractContextManager[object]:
        """Return what makes a span of a piece of work, below the request's."""
        if self._provider is None:
            return contextlib.nullcontext()
        return self._tracer.start_as_current_span(name, record_exception=False)

    def close(self) -> None:
        """Send what there is, for a second at most, and end. Blocks: not for the loop."""
        if self._provider is not None:
            self._provider.force_flush(_FLUSH_MS)
            self._provider.shutdown()

    @web.middleware
    async def trace(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Make a span of each request."""
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else ""
        if self._provider is None or route.endswith(_ENDLESS):
            return await handler(request)
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415 - an extra
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - an extra
            TraceContextTextMapPropagator,
        )

        attributes = {"http.request.method": request.method, "http.route": route}
        if job_id := request.match_info.get("id"):
            attributes["livefuse.job_id"] = job_id[:64]
        with self._tracer.start_as_current_span(
            f"{request.method} {route}",
            context=TraceContextTextMapPropagator().extract(
                {name.lower(): value for name, value in request.headers.items()}
            ),
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
        ) as span:
            response = await handler(request)
            span.set_attribute("http.response.status_code", response.status)
            if response.status >= _SERVER_FAULT:
                span.set_status(StatusCode.ERROR)
            return response


class _Complaints(logging.Handler):
    """Tells what the exporter complains of once a minute, without secrets."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told_s = -_TELL_EVERY_S

    def emit(self, record: logging.LogRecord) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= _TELL_EVERY_S:
            self._told_s = now_s
            cause = redact_text(record.getMessage().splitlines()[0][:200])
            get_logger("tracing").warning("spans are lost", cause=cause)


def _hear_complaints() -> None:
    logger = logging.getLogger("opentelemetry")
    logger.handlers = [_Complaints()]
    logger.propagate = False
