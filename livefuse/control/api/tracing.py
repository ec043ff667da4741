"""What is asked for over HTTP as spans (OpenTelemetry), for whoever collects them: an extra.

Each request is a span, named by its route and child of the caller's (`traceparent`), and what it
does in a thread is one below it. What a daemon asks of a worker for a request carries the span on
(`get_trace`), so that both are one trace. Spans say no more than the route, the job's id and the
status: neither queries nor bodies, keys or addresses.

They go to `tracing.endpoint` (OTLP over HTTP) and nowhere else, from a thread of their own; a
collector that does not answer costs spans, nothing more. Streams, a span without an end, are left
out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from aiohttp import web

from livefuse.control.background import call_in_thread
from livefuse.errors import ConfigError
from livefuse.redact import redact_text
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractContextManager

    from livefuse.config import TracingConfig

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_NO_TRACE: Final[Mapping[str, str]] = MappingProxyType({})
_TRACE: Final[ContextVar[Mapping[str, str]]] = ContextVar("trace", default=_NO_TRACE)
_JOB_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ENDLESS: Final = ("/events", "/live.{kind}")
_SERVER_FAULT: Final = 500
_TIMEOUT_S: Final = 3
_FLUSH_MS: Final = 1000
_LAST_S: Final = 0.3
_TELL_EVERY_S: Final = 60.0


def get_trace() -> Mapping[str, str]:
    """Return the headers by which another process makes its spans below the request's of now.

    Empty where none is made.
    """
    return _TRACE.get()


class Tracing:
    """Makes spans. Used on the control loop; without an endpoint it does nothing."""

    def __init__(
        self, config: TracingConfig, version: str, part: Literal["daemon", "worker"] = "worker"
    ) -> None:
        """Take where spans go, and which process makes them.

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
            resource=Resource.create(
                {
                    "service.name": "livefuse",
                    "service.version": version,
                    "livefuse.part": part,
                }
            ),
        )
        exporter = OTLPSpanExporter(config.endpoint, timeout=_TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("livefuse", version)

    def span(self, name: str) -> AbstractContextManager[object]:
        """Return what makes a span of a piece of work, below the request's."""
        if self._provider is None:
            return contextlib.nullcontext()
        return self._tracer.start_as_current_span(name, record_exception=False)

    async def flush(self) -> None:
        """Send what there is, for a moment at most: the process may be ended next."""
        if self._provider is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_S):
                    await call_in_thread("spans", self._provider.force_flush)

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
        if _JOB_ID.fullmatch(job_id := request.match_info.get("id", "")):
            attributes["livefuse.job_id"] = job_id
        propagator, carrier = TraceContextTextMapPropagator(), dict[str, str]()
        with self._tracer.start_as_current_span(
            f"{request.method} {route}",
            context=propagator.extract(
                {name.lower(): value for name, value in request.headers.items()}
            ),
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
        ) as span:
            propagator.inject(carrier)
            # Set back at the end: the task goes on with the connection's next request.
            before = _TRACE.set(carrier)
            try:
                response = await handler(request)
            finally:
                _TRACE.reset(before)
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
