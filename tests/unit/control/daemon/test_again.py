"""Requests with an Idempotency-Key: done once, whatever becomes of the one who asked."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from livefuse.clock import SystemClock
from livefuse.control.api.body import HELD_BODY
from livefuse.control.api.caller import CALLER, LOCAL
from livefuse.control.daemon.again import AGAIN, once
from livefuse.control.daemon.answers import AnswerStore
from livefuse.control.daemon.context import DAEMON
from livefuse.control.daemon.database import Database
from livefuse.errors import JobError

if TYPE_CHECKING:
    from livefuse.control.daemon.context import Daemon


@pytest.fixture
def app(tmp_path):
    with contextlib.closing(Database(tmp_path / "jobs.db")) as database:
        made = web.Application()
        answers = AnswerStore(database, SystemClock())
        made[DAEMON] = cast("Daemon", SimpleNamespace(answers=answers, under_way=set()))
        yield made


def create_request(app):
    request = make_mocked_request("POST", "/v1/jobs", {"Idempotency-Key": "k"}, app=app)
    request[CALLER] = LOCAL
    request[HELD_BODY] = b"{}"
    return request


def test_who_hangs_up_and_asks_again_is_not_the_first(app):
    """What goes on without him is not begun a second time; then all are answered alike."""
    seen, begun = [], asyncio.Event()

    @once
    async def handle(request):
        seen.append(request[AGAIN].is_repeated)
        begun.set()
        if len(seen) == 1:
            await asyncio.Event().wait()
        return web.json_response({"id": "a"}, status=201)

    async def ask(app: web.Application) -> web.StreamResponse:
        return await handle(create_request(app))

    async def run():
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ask(app))
            await begun.wait()
            first.cancel()
        assert first.cancelled()
        return [await ask(app) for _ in range(2)]

    second, third = asyncio.run(run())
    assert seen == [False, True]
    assert (second.status, second.body) == (third.status, third.body) == (201, b'{"id": "a"}')


def test_what_was_refused_may_be_asked_for_anew(app):
    seen = []

    @once
    async def handle(request):
        seen.append(request[AGAIN].is_repeated)
        if len(seen) == 1:
            raise JobError("not now")
        return web.Response(status=204)

    async def run():
        with pytest.raises(JobError):
            await handle(create_request(app))
        return await handle(create_request(app))

    assert asyncio.run(run()).status == 204
    assert seen == [False, False]
