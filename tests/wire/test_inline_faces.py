"""R5: a picture within JSON may stand in a face's place; what is kept and told is its id."""

from __future__ import annotations

from base64 import b64encode

import cv2
import numpy as np
import pytest

from tests.apis import RunningApi
from tests.daemons import RunningDaemon
from tests.faces import ASTRONAUT

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

CONSENT = "consent=Eileen%20Collins%2C%20tests%2C%2090d"
SWAP = {"source": "test:?size=160x120&fps=5", "operations": ["detect", "align", "swap"]}


@pytest.fixture(scope="module")
def photo():
    """The astronaut's face as a picture that fits well into JSON."""
    pixels = cv2.imread(str(ASTRONAUT))
    assert pixels is not None
    return cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()


@pytest.fixture(scope="module")
def inline(photo):
    return "data:image/jpeg;base64," + b64encode(photo).decode()


def enroll(asked, photo):
    headers = {"Content-Type": "image/jpeg"}
    done = asked("POST", f"/v1/faces?{CONSENT}&name=eileen", body=photo, headers=headers)
    assert done.status == 201, done.data
    return done.value["id"]


def list_texts(folder):
    """All that was written in words."""
    return [
        path.read_text(errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in (".jsonl", ".out", ".err", ".json")
    ]


def test_a_worker_takes_a_picture_in_place_of_a_face(tmp_path, photo, inline):
    """C78: under the rules of one that is sent as it is."""
    with RunningApi(tmp_path) as api:
        spec = SWAP | {"source_face": "avatar:fox"}
        assert api.ask("POST", "/v1/jobs", {"id": "a", "spec": spec, "start": True}).status == 201
        path = "/v1/jobs/a/source-face"
        refused = api.ask("PUT", path, {"face": inline})
        assert refused.status == 403
        assert "nobody has consented" in refused.value["detail"]
        done = api.ask("PUT", f"{path}?{CONSENT}&name=eileen", {"face": inline})
        assert done.status == 200, done.data
        face = done.value["id"]
        assert face.startswith("face_")
        assert api.ask("GET", "/v1/jobs/a/token").value["source_face"] == face
        # What is enrolled needs no consent again, in any dress, also where a job is made.
        assert api.ask("PUT", path, {"face": b64encode(photo).decode()}).value["id"] == face
        made = api.ask("POST", "/v1/jobs", {"id": "b", "spec": SWAP | {"source_face": inline}})
        assert made.status == 201, made.data
        assert made.value["spec"]["source_face"] == face
        assert api.ask("POST", f"/v1/faces/{face}/revoke").status == 200
        assert api.ask("PUT", path, {"face": inline}).status == 403
        again = api.ask("PUT", "/v1/jobs/b/spec", SWAP | {"source_face": inline})
        assert again.status == 403
        records = api.ask("GET", "/v1/audit").value["records"]
        refusals = [one for one in records if one["event"] == "job.refused"]
        assert len(refusals) == 3
    code = b64encode(photo).decode()[1000:1100]
    assert not any(code in text for text in list_texts(tmp_path))


def test_what_is_no_picture_or_too_much_of_one_is_refused(tmp_path):
    wall = cv2.imencode(".png", np.full((64, 64, 3), 200, np.uint8))[1].tobytes()
    with RunningApi(tmp_path) as api:
        spec = SWAP | {"source_face": "avatar:fox"}
        assert api.ask("POST", "/v1/jobs", {"id": "a", "spec": spec, "start": True}).status == 201
        path = f"/v1/jobs/a/source-face?{CONSENT}"

        def put(face):
            answer = api.ask("PUT", path, {"face": face})
            return answer.status, answer.value.get("detail", "")

        assert put("data:image/png;base64," + b64encode(wall).decode())[0] == 422
        status, detail = put("data:text/html;base64,AAAA")
        assert (status, "no picture" in detail) == (422, True)
        assert put("no base64 at all " * 20)[0] == 422
        assert put("A" * (2 << 20) + "A")[0] == 422
        assert put("A" * (3 << 20))[0] == 413
        assert api.ask("GET", "/v1/jobs/a/token").value["source_face"] == "avatar:fox"
        patched = api.ask(
            "PATCH",
            "/v1/jobs/a/token",
            {"source_face": "data:image/png;base64,AAAA"},
            headers={"Content-Type": "application/merge-patch+json"},
        )
        assert patched.status == 422
        assert "by its id" in patched.value["hint"] or "by id" in patched.value["hint"]


def test_the_daemon_keeps_the_id_alone(tmp_path, photo, inline):
    with RunningDaemon(tmp_path) as daemon:
        face = enroll(daemon.ask, photo)
        made = daemon.ask(
            "POST",
            "/v1/jobs",
            {"id": "a", "spec": SWAP | {"source_face": inline}},
            headers={"Idempotency-Key": "once"},
        )
        assert made.status == 201, made.data
        assert made.value["spec"]["source_face"] == face
        submitted = daemon.ask("PUT", "/v1/jobs/a/spec", SWAP | {"source_face": inline})
        assert submitted.value["spec"]["source_face"] == face
    code = b64encode(photo).decode()[1000:1100]
    assert not any(code in text for text in list_texts(tmp_path))
