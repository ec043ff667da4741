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
from livefuse.control.api.views import AmountView, Catalogue, LookView, OperationView
from livefuse.looks import list_looks
from livefuse.safety.records import AVATAR_PREFIX
from livefuse.token import NEEDS, OPERATIONS, Parameters

if TYPE_CHECKING:
    from aiohttp import web

    from livefuse.control.api.views import FaceView


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
        looks=[LookView(k.name, k.title, k.chinese, k.text, k.parameters) for k in looks],
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
    records = [r for r in worker.faces.list_records() if r.get_state(now) == "valid"]
    return [create_face_view(r.face_id, r.person) for r in records]
