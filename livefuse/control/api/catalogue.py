"""Everything that can be asked for: operations, parameters, amounts, looks, faces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from livefuse import __version__
from livefuse.beauty import COLOURS, PARAMETERS
from livefuse.control.api.body import answer
from livefuse.control.api.caller import get_caller, is_large_enough
from livefuse.control.api.context import Api, get_api
from livefuse.control.api.source import create_face_view
from livefuse.control.api.views import (
    AmountView,
    Catalogue,
    LookList,
    LookView,
    ModelList,
    ModelView,
    OperationView,
)
from livefuse.looks import list_looks
from livefuse.runtime.registry import load_registry
from livefuse.safety.records import AVATAR_PREFIX
from livefuse.token import NEEDS, OPERATIONS, Parameters

if TYPE_CHECKING:
    from aiohttp import web

    from livefuse.control.api.views import FaceView
    from livefuse.looks.library import Look


async def show_catalogue(request: web.Request) -> web.Response:
    """Return what there is; faces and looks as they are now."""
    api = get_api(request)
    knows_people = is_large_enough(get_caller(request), "streamer")
    return answer(
        await api.run("catalogue", lambda: create_catalogue(api, knows_people=knows_people))
    )


def create_catalogue(api: Api, *, knows_people: bool) -> Catalogue:
    """Return what there is, who is enrolled only for those who may show them. Reads files."""
    looks = list_looks(api.config.beautify.looks)
    return Catalogue(
        version=__version__,
        operations=[OperationView(name, list(NEEDS.get(name, ()))) for name in OPERATIONS],
        parameters=_create_parameters_schema(),
        beautify=_list_amounts(),
        looks=[_create_look_view(look) for look in looks],
        faces=_list_drawn(api) + (_list_people(api) if knows_people else []),
    )


def _create_parameters_schema() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components([Parameters], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = parts["Parameters"]
    return schema


def _list_amounts() -> list[AmountView]:
    amounts = [
        AmountView(
            name=name,
            chinese=row.chinese,
            kind=row.kind,
            text=row.text,
            low=row.low,
            high=row.high,
            default=row.default,
        )
        for name, row in PARAMETERS.items()
    ]
    colours = [
        AmountView(
            name=name,
            chinese=colour.chinese,
            kind="colour",
            text=colour.text,
            low=0.0,
            high=0.0,
            default=colour.default,
        )
        for name, colour in COLOURS.items()
    ]
    return amounts + colours


def _list_drawn(api: Api) -> list[FaceView]:
    names = api.manager.worker.list_avatars()
    return [create_face_view(f"{AVATAR_PREFIX}{name}", name) for name in names]


def _list_people(api: Api) -> list[FaceView]:
    worker = api.manager.worker
    now = worker.clock.epoch_s()
    valid = [r for r in worker.faces.list_records() if r.get_state(now) == "valid"]
    records = [r for r in valid if r.has_picture]  # others are known again, and cannot be shown
    return [create_face_view(r.face_id, r.person) for r in records]


async def list_looks_there(request: web.Request) -> web.Response:
    """Return the looks, the user's own among them."""
    api = get_api(request)
    looks = await api.run("looks", lambda: list_looks(api.config.beautify.looks))
    return answer(LookList([_create_look_view(look) for look in looks]))


async def list_models_there(request: web.Request) -> web.Response:
    """Return the networks that are known, and which of them are here."""
    api = get_api(request)
    return answer(ModelList(await api.run("models", lambda: _list_models(api))))


def _list_models(api: Api) -> list[ModelView]:
    registry = load_registry(api.config.models)
    views = []
    for model in registry.list_models():
        is_here = model.embedded or registry.is_present(model.name)
        row = registry.get_installed(model.name)
        views.append(
            ModelView(
                name=model.name,
                task=model.task,
                family=model.family,
                state="embedded" if model.embedded else "present" if is_here else "missing",
                licence=model.licence,
                is_restricted=model.restricted,
                is_accepted=not model.restricted or (row is not None and bool(row.accepted)),
            )
        )
    return views


def _create_look_view(look: Look) -> LookView:
    return LookView(look.name, look.title, look.chinese, look.text, look.parameters)
