"""Takes spans as a collector of OpenTelemetry does: OTLP over HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Span(NamedTuple):
    """What a test asks of a span; ids are hex."""

    part: str
    name: str
    trace: str
    span: str
    parent: str


class Collector(HTTPServer):
    """Listens while its block runs; `bodies` are the paths and bodies of what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.bodies: list[tuple[str, bytes]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"

    def list_spans(self) -> list[Span]:
        """Return all that has come."""
        found = []
        for _, body in self.bodies.copy():
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                said = {one.key: one.value.string_value for one in resource.resource.attributes}
                part = said.get("livefuse.part", "")
                for scope in resource.scope_spans:
                    found += [_read(part, span) for span in scope.spans]
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def _read(part: str, span: Any) -> Span:
    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    return Span(part, span.name, *ids)


class _Take(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""
