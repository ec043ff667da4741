"""What can be asked for: looks and networks, each as a list of its own."""

import json

from tests.unit.control.api.test_server import serve


def fetch(path):
    found = {}

    async def use(_server, http, _jobs):
        async with http.get(path) as answer:
            assert answer.status == 200, await answer.text()
            found.update(json.loads(await answer.text()))

    serve(use)
    return found


def test_looks_are_listed_with_their_amounts():
    looks = {look["name"]: look for look in fetch("/v1/looks")["looks"]}
    assert "natural" in looks
    assert looks["natural"]["parameters"]
    assert looks["natural"]["chinese"]


def test_models_tell_whether_they_are_here_and_may_be_used():
    models = {model["name"]: model for model in fetch("/v1/models")["models"]}
    assert models["centerface"]["state"] == "embedded"
    assert models["centerface"]["is_accepted"]
    missing = models["inswapper_128"]
    assert missing["state"] == "missing"
    assert missing["is_restricted"]
    assert not missing["is_accepted"]
