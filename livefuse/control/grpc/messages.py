"""Messages to the JSON of the HTTP API and back. Names are the same; operations are wrapped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from google.protobuf import json_format

from livefuse.control.http_client import Query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from livefuse.control.grpc.table import Call
    from livefuse.control.http_client import Answer

# A list within a message, so that a list that was left out differs from an empty one.
_WRAPPER: Final = "livefuse.v1.Operations"
_FIELD: Final = re.compile(r"\{(\w+)\}")
_MEDIA_TYPES: Final = {"PATCH": "application/merge-patch+json"}


class _Body(NamedTuple):
    data: bytes | None
    media_type: str = ""


def create_query(call: Call, request: Message, headers: Mapping[str, str]) -> Query:
    """Return what is asked over HTTP; `headers` come along.

    Raises:
        ValueError: a number is none, or a field that stands in the path is empty.
    """
    try:
        fields = _unwrap(_to_dict(request), request.DESCRIPTOR)
    except json_format.Error as error:
        raise ValueError(str(error)) from None
    path = _FIELD.sub(lambda found: _take_part(fields, found[1]), call.path)
    named = {header: fields.pop(field) for field, header in call.headers if field in fields}
    body = _take_body(call, request, fields)
    kind = {"Content-Type": body.media_type} if body.media_type else {}
    rest = {name: text for name, value in fields.items() if (text := _write_text(value))}
    tail = f"?{urlencode(rest)}" if rest else ""
    return Query(call.method, path + tail, {**headers, **named, **kind}, body.data)


def read_answer(call: Call, answer: Answer, reply: Message) -> None:
    """Fill `reply` with what came back.

    Raises:
        ValueError: it does not fit.
    """
    for field, header in call.reply_headers:
        setattr(reply, field, answer.headers.get(header, ""))
    if call.kind == "file":
        reply.data = answer.data
        reply.media_type = answer.headers.get("content-type", "")
    elif answer.data:
        value = msgspec.json.decode(answer.data)
        fill(reply, {call.reply: value} if call.reply else value)


def fill(message: Message, value: dict[str, Any]) -> None:
    """Fill `message` with JSON; what it has no field for is left out.

    Raises:
        ValueError: it does not fit.
    """
    try:
        json_format.ParseDict(_wrap(value, message.DESCRIPTOR), message, ignore_unknown_fields=True)
    except json_format.Error as error:
        raise ValueError(str(error)) from None


def _to_dict(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return told


def _take_part(fields: dict[str, Any], name: str) -> str:
    part = str(fields.pop(name, ""))
    if not part:
        raise ValueError(f"{name} is empty")
    return quote(part, safe="")


def _take_body(call: Call, request: Message, fields: dict[str, Any]) -> _Body:
    """Return what is sent as the body, and take it out of `fields`."""
    if call.upload and call.upload in fields:
        picture = fields.pop(call.upload)
        media_type = picture.pop("media_type", "application/octet-stream")
        picture.pop("data", None)
        fields |= picture
        return _Body(getattr(request, call.upload).data, media_type)
    if not call.body:
        return _Body(None)
    value = fields.copy() if call.body == "*" else fields.get(call.body, {})
    if call.body == "*":
        fields.clear()
    else:
        fields.pop(call.body, None)
    media_type = _MEDIA_TYPES.get(call.method, "application/json")
    return _Body(msgspec.json.encode(value), media_type)


def _write_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a field as a query has it."""
    if isinstance(value, bool):
        return "true" if value else ""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _unwrap(value: dict[str, Any], kind: Descriptor) -> dict[str, Any]:
    """Return `value` with each list of operations as a plain list."""
    return {name: _change(part, kind, name, wrap=False) for name, part in value.items()}


def _wrap(value: dict[str, Any], kind: Descriptor) -> dict[str, Any]:
    """Return `value` with each list of operations in its message."""
    return {name: _change(part, kind, name, wrap=True) for name, part in value.items()}


def _change(value: Any, kind: Descriptor, name: str, *, wrap: bool) -> Any:  # noqa: ANN401 - JSON
    field = kind.fields_by_name.get(name)
    inner = field.message_type if field is not None else None
    if inner is None or value is None or not inner.full_name.startswith("livefuse."):
        return value
    if inner.full_name == _WRAPPER:
        return {"names": value} if wrap else value.get("names", [])
    change = _wrap if wrap else _unwrap
    if inner.GetOptions().map_entry:
        return value
    if isinstance(value, list):
        return [change(one, inner) for one in value]
    return change(value, inner)
