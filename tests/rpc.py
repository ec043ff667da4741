"""A client of livefuse.v1 for tests: any call by its name, over a real channel."""

from __future__ import annotations

from typing import Any, Self

import pytest

from tests.apis import KEY

grpc = pytest.importorskip("grpc", reason="the extra grpc is not installed")

from google.protobuf import message_factory  # noqa: E402 - only where there is grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402 - as above
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc  # noqa: E402 - as above

from livefuse.control.grpc import livefuse_pb2  # noqa: E402 - as above

pb: Any = livefuse_pb2  # its messages are made as it is loaded: mypy sees none

__all__ = [
    "Client",
    "grpc",
    "health_pb2",
    "health_pb2_grpc",
    "pb",
    "reflection_pb2",
    "reflection_pb2_grpc",
]


class Client:
    """Calls `client.GetJob(job_id="x")` and the like; streams give their iterator."""

    def __init__(
        self, port: int, key: str = KEY, *, credentials: Any = None, **metadata: str
    ) -> None:
        where = f"127.0.0.1:{port}"
        self.channel = (
            grpc.insecure_channel(where)
            if credentials is None
            else grpc.secure_channel(where, credentials)
        )
        self._metadata = tuple({"authorization": f"Bearer {key}", **metadata}.items())
        self.trailing: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def __getattr__(self, name: str) -> Any:
        services = pb.DESCRIPTOR.services_by_name.values()
        method = next(m for s in services for m in s.methods if m.name == name)
        takes = message_factory.GetMessageClass(method.input_type)
        gives = message_factory.GetMessageClass(method.output_type)
        shape = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        call = shape(
            f"/{method.containing_service.full_name}/{name}",
            request_serializer=takes.SerializeToString,
            response_deserializer=gives.FromString,
        )

        def ask(timeout: float = 60, **fields: Any) -> Any:
            return call(takes(**fields), timeout=timeout, metadata=self._metadata)

        return ask

    def fail(self, name: str, **fields: Any) -> tuple[Any, str]:
        """Make a call that is to fail; return its status and words."""
        try:
            answer = getattr(self, name)(**fields)
            answer = list(answer) if isinstance(answer, grpc.Call) else answer
        except grpc.RpcError as error:
            self.trailing = dict(error.trailing_metadata() or ())
            return error.code(), error.details()
        raise AssertionError(f"{name} was answered: {answer}")
