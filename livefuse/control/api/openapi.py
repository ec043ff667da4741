"""The OpenAPI 3.1 description, made from the routes and the types they name."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse import __version__
from livefuse.control.api.guard import OPEN_PATHS
from livefuse.control.api.problems import MEDIA_TYPE
from livefuse.control.api.routes import ROUTES
from livefuse.control.api.views import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.control.api.routes import Route

_PART: Final = re.compile(r"\{(\w+)(?::([\w|]+))?\}")
_WAYS: Final = frozenset({"whip", "whep"})
_ALWAYS_FAILS: Final = (401, 403, 429)
_REF: Final = "#/components/schemas/{name}"


def create_description() -> dict[str, Any]:
    """Return the description as plain values."""
    kinds = _list_types()
    references, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = dict(zip(kinds, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        path = _PART.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _describe(route, schemas)
    description = {
        "openapi": "3.1.0",
        "info": {"title": "livefuse", "version": __version__, "summary": "The API of one worker."},
        "security": [{"bearer": []}, {"query": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "key"},
            },
        },
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(description))
    return plain


def _list_types() -> list[type]:
    named = [kind for route in ROUTES for kind in (route.takes, route.gives)]
    types = [kind for kind in named if isinstance(kind, type)]
    return list(dict.fromkeys([Problem, *types]))


def _describe(route: Route, schemas: dict[type, Any]) -> dict[str, Any]:
    summary, _, more = (inspect.getdoc(route.handler) or "").partition("\n\n")
    operation: dict[str, Any] = {
        "operationId": _name_operation(route),
        "summary": " ".join(summary.split()),
        "parameters": [*_list_path_parts(route.path), *map(_describe_query, route.query)],
        "responses": {str(route.status): _describe_answer(route, schemas)},
    }
    if more:
        operation["description"] = more
    if route.path in OPEN_PATHS:
        operation["security"] = []
    else:
        operation["x-role"] = route.role
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": _describe_body(route, schemas)}
    problem = {"content": {MEDIA_TYPE: {"schema": schemas[Problem]}}, "description": "a problem"}
    for status in sorted({*_ALWAYS_FAILS, *route.fails}):
        operation["responses"][str(status)] = problem
    return operation


def _name_operation(route: Route) -> str:
    name = f"{route.handler.__module__.rpartition('.')[2]}_{route.handler.__name__}"
    shares = sum(other.handler is route.handler for other in ROUTES) > 1
    way = next((part for part in route.path.split("/") if part in _WAYS), "") if shares else ""
    return f"{name}_{way}" if way else name


def _describe_answer(route: Route, schemas: dict[type, Any]) -> dict[str, Any]:
    if route.gives is None:
        return {"description": "done"}
    if isinstance(route.gives, type):
        return {
            "description": "done",
            "content": {"application/json": {"schema": schemas[route.gives]}},
        }
    return {"description": "done", "content": {route.gives: {"schema": {"type": "string"}}}}


def _describe_body(route: Route, schemas: dict[type, Any]) -> dict[str, Any]:
    if isinstance(route.takes, type):
        return {"application/json": {"schema": schemas[route.takes]}}
    names: Iterable[str] = (route.takes,) if isinstance(route.takes, str) else route.takes or ()
    return {name: {"schema": _guess_schema(name)} for name in names}


def _guess_schema(media_type: str) -> dict[str, Any]:
    return {"type": "object"} if media_type.endswith("json") else {"type": "string"}


def _list_path_parts(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": choices.split("|")}
            if choices
            else {"type": "string"},
        }
        for name, choices in _PART.findall(path)
    ]


def _describe_query(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
