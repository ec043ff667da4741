"""Does a call by asking the HTTP API: so no rule can differ between the two."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

import grpc
import msgspec
from google.protobuf import message_factory

from livefuse.control.grpc import livefuse_pb2
from livefuse.control.grpc.messages import create_query, fill, read_answer
from livefuse.control.grpc.statuses import RefusalError, refuse_by_answer, tell_refusals
from livefuse.control.grpc.table import CALLS, PACKAGE
from livefuse.control.http_client import Exchange
from livefuse.errors import DaemonError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.message import Message

    from livefuse.control.grpc.table import Call
    from livefuse.control.http_client import HttpClient, Query

_PASSED_ON: Final = ("authorization", "idempotency-key", "traceparent", "tracestate")
_PATIENCE_S: Final = 60.0  # for those who name no deadline
_SILENCE_S: Final = 30.0  # events come several times a second
_LONGEST_S: Final = 3600.0
_BAD: Final = 400
_FULL: Final = grpc.StatusCode.RESOURCE_EXHAUSTED
_EVENT: Final = livefuse_pb2.DESCRIPTOR.message_types_by_name["JobEvent"]


class Shell:
    """Handlers for all calls, for any thread; streams are at most `max_streams` at a time."""

    def __init__(self, client: HttpClient, max_streams: int) -> None:
        self._client = client
        self._places = threading.BoundedSemaphore(max_streams)
        self._streams: set[Exchange] = set()
        self._is_ending = False
        self._lock = threading.Lock()

    def create_handlers(self) -> list[grpc.GenericRpcHandler]:
        """Return what a server is given, one for each service."""
        methods: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
        for call in CALLS:
            service, _, name = call.name.partition("/")
            methods.setdefault(service, {})[name] = self._create_handler(call)
        return [
            grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", handlers)
            for service, handlers in methods.items()
        ]

    def end_streams(self) -> None:
        """Send away all who watch, and let nobody begin."""
        with self._lock:
            self._is_ending = True
            streams = self._streams.copy()
        for exchange in streams:
            exchange.abort()

    def _create_handler(self, call: Call) -> grpc.RpcMethodHandler:
        service, _, name = call.name.partition("/")
        method = livefuse_pb2.DESCRIPTOR.services_by_name[service].methods_by_name[name]
        takes = message_factory.GetMessageClass(method.input_type)
        gives = message_factory.GetMessageClass(method.output_type)

        def answer(request: Message, context: grpc.ServicerContext) -> Message:
            reply = gives()
            with tell_refusals(context, name):
                self._answer(call, request, context, reply)
            return reply

        def stream(request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
            with tell_refusals(context, name):
                yield from self._stream(call, request, context)

        shape: Callable[..., grpc.RpcMethodHandler] = grpc.unary_unary_rpc_method_handler
        if call.kind == "events":
            shape = grpc.unary_stream_rpc_method_handler
        return shape(
            stream if call.kind == "events" else answer,
            request_deserializer=takes.FromString,
            response_serializer=gives.SerializeToString,
        )

    def _answer(
        self,
        call: Call,
        request: Message,
        context: grpc.ServicerContext,
        reply: Message,
    ) -> None:
        answer = self._client.ask(
            _create_query(call, request, context),
            _choose_patience_s(context),
            lambda abort: _call_at_end(context, abort),
        )
        if answer.status >= _BAD:
            raise refuse_by_answer(answer)
        read_answer(call, answer, reply)

    def _stream(
        self, call: Call, request: Message, context: grpc.ServicerContext
    ) -> Iterator[Message]:
        query = _create_query(call, request, context)
        if not self._places.acquire(blocking=False):
            raise RefusalError(_FULL, "all places of watchers are taken: try again soon")
        try:
            with Exchange(self._client, query, _PATIENCE_S) as exchange, self._enlist(exchange):
                _call_at_end(context, exchange.abort)
                if exchange.open().status >= _BAD:
                    raise refuse_by_answer(exchange.read_rest())
                yield from _read_events(exchange)
        finally:
            self._places.release()

    @contextlib.contextmanager
    def _enlist(self, exchange: Exchange) -> Iterator[None]:
        with self._lock:
            self._streams.add(exchange)
            is_ending = self._is_ending
        try:
            if is_ending:
                exchange.abort()
            yield
        finally:
            with self._lock:
                self._streams.discard(exchange)


def _create_query(call: Call, request: Message, context: grpc.ServicerContext) -> Query:
    given: list[tuple[str, Any]] = list(context.invocation_metadata())
    headers = {key: value for key, value in given if key in _PASSED_ON}
    try:
        return create_query(call, request, headers)
    except ValueError as error:
        raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, str(error)[:200]) from None


def _choose_patience_s(context: grpc.ServicerContext) -> float:
    """Return how long the client still waits; one that names no deadline is said to for ever."""
    left_s: float | None = context.time_remaining()
    return _PATIENCE_S if left_s is None or left_s > _LONGEST_S else left_s


def _call_at_end(context: grpc.ServicerContext, abort: Callable[[], None]) -> None:
    """Let nobody work for a client that has gone, or went already."""
    if not context.add_callback(abort):
        abort()


def _read_events(exchange: Exchange) -> Iterator[Message]:
    """Yield server-sent events as messages, `end` last.

    Raises:
        DaemonError: it broke off before the end.
    """
    name = ""
    create_event = message_factory.GetMessageClass(_EVENT)
    while line := exchange.read_line(_SILENCE_S):
        word, _, value = line.decode("utf-8", "replace").strip().partition(": ")
        if word == "event":
            name = value
        elif word == "data":
            event = create_event()
            fill(event, {name: msgspec.json.decode(value)})
            if event.WhichOneof("event"):  # none: a kind that came later than this table
                yield event
            if name == "end":
                return
    raise DaemonError("the events broke off", hint="watch again")
