"""The description says what the code does: it is made from the same table, and checked here."""

import asyncio
import json
import re
from typing import TYPE_CHECKING, cast

from aiohttp import web
from prometheus_client import CollectorRegistry

from livefuse.config import Config
from livefuse.control.api.context import Api
from livefuse.control.api.doorway import Doorway
from livefuse.control.api.key import accept_key
from livefuse.control.api.openapi import create_description
from livefuse.control.api.routes import ROUTES
from livefuse.control.api.server import create_application

if TYPE_CHECKING:
    from livefuse.control.jobs import JobManager


def list_operations(description):
    return {
        (method.upper(), path)
        for path, methods in description["paths"].items()
        for method in methods
    }


def create_app():
    api = Api(manager=cast("JobManager", None), config=Config(), metrics=CollectorRegistry())
    return create_application(api, "127.0.0.1", accept_key(""), Doorway())


def test_all_that_is_served_is_described():
    """Whatever the router answers to, but for the page, has its place in the description."""
    served = set()
    for resource in create_app().router.resources():
        path = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", resource.canonical)
        served |= {(route.method, path) for route in resource}
    served = {(method, path) for method, path in served if method != "HEAD"}
    own = {("GET", "/"), ("GET", "/web/{path}"), ("GET", "/v1/openapi.json")}
    assert served - own == list_operations(create_description())


def test_every_reference_leads_somewhere():
    description = create_description()
    text = json.dumps(description)
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert names
    assert names <= set(description["components"]["schemas"])


def test_every_operation_says_what_it_does_and_how_it_fails():
    for path, methods in create_description()["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"].endswith("."), (method, path)
            assert "401" in operation["responses"]
            wanted = set(re.findall(r"\{(\w+)\}", path))
            told = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert told == wanted


def test_operation_ids_are_unique():
    methods = [m for path in create_description()["paths"].values() for m in path.values()]
    ids = [operation["operationId"] for operation in methods]
    assert len(set(ids)) == len(ids) == len(ROUTES)


def test_what_is_not_described_is_a_404_problem():
    async def ask():
        runner = web.AppRunner(create_app())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /v2/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = (await reader.read()).decode()
        writer.close()
        await runner.cleanup()
        return answer

    answer = asyncio.run(ask())
    assert answer.startswith("HTTP/1.1 404")
    assert "application/problem+json" in answer
