"""What clients bring along, and what none of them can take away."""

from __future__ import annotations

import time
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.apis import RunningApi
from tests.wire.test_marks import find_label

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

PHOTO = Path(__file__).parents[1] / "data" / "astronaut.png"
SOURCE = "demo:?size=640x360"
MERGE = {"Content-Type": "application/merge-patch+json"}
LOOK = "korean_dewy"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    with RunningApi(folder, "ingest.canvas=640x360") as running:
        yield running


def start(api, name, **spec):
    made = api.ask("POST", "/v1/jobs", {"id": name, "spec": {"source": SOURCE, **spec}})
    assert made.status == 201, made.data
    assert api.ask("POST", f"/v1/jobs/{name}/start").status == 200
    api.wait_frames(name, 5)
    return made


def wait_token(api, job, operation):
    """Return the token of a frame on which the operation was done."""
    deadline = time.monotonic() + 30
    while True:
        token = api.wait_frames(job, 2)["token"]
        if operation in [entry["state"] for entry in token["log"]]:
            return token
        assert time.monotonic() < deadline, token


def see_label(api, job):
    data = api.ask("GET", f"/v1/jobs/{job}/snapshot.jpg").data
    gray = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert gray is not None
    return find_label(gray)


def test_a_picture_a_prompt_and_a_target_are_uploaded(api):
    """(R49) A look by its name, a file to write, and a person's picture with their consent."""
    made = start(api, "brought", look=LOOK, targets=["brought.mkv"])
    assert made.value["spec"]["targets"] == [str(api.folder / "out" / "brought.mkv")]
    amounts = {one["name"]: one for one in api.ask("GET", "/v1/looks").value["looks"]}[LOOK]
    assert made.value["spec"]["parameters"]["beautify"] == amounts["parameters"]
    wait_token(api, "brought", "beautify")
    path = "/v1/jobs/brought/source-face?consent=Eileen+Collins,+tests,+1d&name=eileen"
    image = {"Content-Type": "image/png"}
    sent = api.ask("PUT", path, body=PHOTO.read_bytes(), headers=image)
    assert sent.status == 200, sent.data
    operations = ["detect", "align", "swap"]
    patched = api.ask("PATCH", "/v1/jobs/brought/token", {"operations": operations}, headers=MERGE)
    assert patched.status == 200, patched.data
    assert wait_token(api, "brought", "swap")["source_face"] == sent.value["id"]
    assert api.ask("POST", "/v1/jobs/brought/stop").status == 200
    assert (api.folder / "out" / "brought.mkv").stat().st_size > 10_000
    assert api.ask("DELETE", "/v1/jobs/brought").status == 204


def test_no_client_switches_the_marks_off(api):
    """(R51) Whatever is asked of the job or of its token, the label stays where it was."""
    start(api, "marked", operations=["detect", "align", "swap"], source_face="avatar:robot")
    wait_token(api, "marked", "swap")
    assert see_label(api, "marked") > 0.7
    for key in ("key-of-a-streamer", "key-of-an-operator"):
        for wish in (
            {"mark": {"label": False}},
            {"parameters": {"mark": False}},
            {"parameters": {"label": "none", "watermark": False}},
            {"is_generated": False},
        ):
            refused = api.ask("PATCH", "/v1/jobs/marked/token", wish, headers=MERGE, key=key)
            assert refused.status in (403, 404, 422), (key, wish)
    hidden = {"extensions": {"x-mark": {"label": False, "off": True}}}
    assert api.ask("PATCH", "/v1/jobs/marked/token", hidden, headers=MERGE).status == 200
    for field in ("mark", "label", "config"):
        spec = {"source": SOURCE, field: {"corner": "nowhere"}}
        assert api.ask("POST", "/v1/jobs", {"spec": spec}).status == 422
    status = api.wait_frames("marked", 10)
    assert see_label(api, "marked") > 0.7
    shown = status["counts"]["marked_frames"]
    assert shown > 0
    later = api.wait_frames("marked", 10)
    assert later["counts"]["marked_frames"] - shown >= 10
    assert later["counts"]["keyframe_records"] >= 1
    assert api.ask("DELETE", "/v1/jobs/marked").status == 204
