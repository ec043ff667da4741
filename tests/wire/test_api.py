"""The API of one worker, over real HTTP, with real jobs behind it."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.apis import RunningApi
from tests.wire.servers import NginxRtmp, RtspServer, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

PHOTO = Path(__file__).parents[1] / "data" / "astronaut.png"
TEST = "test:?size=320x180"
CONSENT = "Eileen%20Collins%2C%20tests%2C%2090d"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with RunningApi(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest.fixture
def job(api):
    """A job that runs: a talking head, faces covered."""
    spec = {"source": "demo:?size=480x270", "operations": ["detect", "blur"]}
    made = api.ask("POST", "/v1/jobs", {"spec": spec, "start": True})
    assert made.status == 201, made.data
    name = made.value["id"]
    api.wait_frames(name)
    yield name
    assert api.ask("DELETE", f"/v1/jobs/{name}").status == 204


def patch(api, job, value, **headers):
    kind = {"Content-Type": "application/merge-patch+json"}
    return api.ask("PATCH", f"/v1/jobs/{job}/token", value, headers=kind | headers)


def take_picture(api, job):
    data = api.ask("GET", f"/v1/jobs/{job}/snapshot.jpg").data
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    return picture


def measure_detail(picture) -> float:
    """How much fine structure the middle of the picture has: nothing once it is covered whole."""
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    return float(cv2.Laplacian(grey[10:230, :400], cv2.CV_64F).var())


def test_a_job_from_draft_to_deletion(api):
    made = api.ask("POST", "/v1/jobs", {"id": "life"})
    assert (made.status, made.value["state"]) == (201, "draft")
    assert made.headers["Location"] == "/v1/jobs/life"
    assert api.ask("POST", "/v1/jobs", {"id": "life"}).status == 409
    assert api.ask("POST", "/v1/jobs/life/start").status == 409
    spec = {"source": TEST, "operations": []}
    assert api.ask("PUT", "/v1/jobs/life/spec", spec).value["state"] == "submitted"
    assert api.ask("POST", "/v1/jobs/life/start").value["state"] == "running"
    api.wait_frames("life")
    assert api.ask("PUT", "/v1/jobs/life/spec", spec).status == 409
    assert api.ask("POST", "/v1/jobs/life/stop").value["state"] == "stopped"
    assert api.ask("GET", "/v1/jobs/life/token").status == 409
    assert api.ask("POST", "/v1/jobs/life/start").value["state"] == "running"
    api.wait_frames("life")
    assert "life" in [one["id"] for one in api.ask("GET", "/v1/jobs").value["jobs"]]
    assert api.ask("DELETE", "/v1/jobs/life").status == 204
    assert api.ask("GET", "/v1/jobs/life").status == 404


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"spec": {"source": "rtps://x/y"}}, 422, "did you mean rtsp"),
        ({"spec": {"source": TEST, "operations": ["blurr"]}}, 422, "did you mean blur"),
        ({"spec": {"source": TEST, "operations": ["blur"]}}, 422, "detect"),
        ({"spec": {"source": TEST, "source_face": "nobody"}}, 403, "enrolled"),
        ({"spec": {"source": TEST, "look": "natral"}}, 422, "natural"),
        ({"spec": {"source": TEST, "parameters": {"blend_ratio": 2}}}, 422, "blend_ratio"),
        ({"spec": {"sauce": "test:"}}, 422, "sauce"),
        ({"start": True}, 422, "spec"),
        ({"id": "a b"}, 422, "id"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_leaves_nothing(api, body, status, words):
    before = api.ask("GET", "/v1/jobs").value
    answer = api.ask("POST", "/v1/jobs", body)
    assert answer.status == status
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    told = answer.value
    assert words in f"{told['detail']} {told['hint']}"
    assert told["status"] == status
    assert api.ask("GET", "/v1/jobs").value == before


def test_secrets_are_not_shown_again(api):
    """C76: a URL's password and stream key stay where they were given."""
    spec = {
        "source": "rtsp://u:hunter2hunter2@127.0.0.1:9/x",
        "targets": ["rtmp://127.0.0.1:9/a/s3cr3tk3y"],
    }
    made = api.ask("POST", "/v1/jobs", {"id": "secret", "spec": spec})
    assert made.status == 201
    for answer in (made, api.ask("GET", "/v1/jobs"), api.ask("GET", "/v1/jobs/secret")):
        assert b"hunter2hunter2" not in answer.data
        assert b"s3cr3tk3y" not in answer.data
    api.ask("DELETE", "/v1/jobs/secret")


def test_a_patch_takes_effect_whole_and_no_change_is_lost(api, job):
    """R12."""
    read = api.ask("GET", f"/v1/jobs/{job}/token")
    etag = read.headers["ETag"]
    swap = {"operations": ["detect", "align", "swap"], "source_face": "avatar:robot"}
    done = patch(api, job, swap, **{"If-Match": etag})
    assert done.status == 200, done.data
    assert done.value["operations"] == swap["operations"]
    assert done.headers["ETag"] != etag
    assert patch(api, job, {"operations": ["detect"]}, **{"If-Match": etag}).status == 412
    wait_until(
        lambda: "swap" in [e["state"] for e in api.wait_frames(job)["token"]["log"]], 20, "swap"
    )
    refused = patch(api, job, {"operations": ["swap", "detect"]})
    assert refused.status == 422
    assert api.ask("GET", f"/v1/jobs/{job}/token").value["operations"] == swap["operations"]
    assert patch(api, job, {"state": "mine"}).status == 422
    assert patch(api, job, {"source_face": "face_000000000000"}).status == 403


def test_everything_is_covered_at_once_and_shown_again(api, job):
    detail = measure_detail(take_picture(api, job))
    assert patch(api, job, {"parameters": {"cover_all": True}}).status == 200
    api.wait_frames(job, 8)
    assert measure_detail(take_picture(api, job)) < detail / 5
    patch(api, job, {"parameters": {"cover_all": False}})
    api.wait_frames(job, 8)
    assert measure_detail(take_picture(api, job)) > detail / 2


def test_a_source_picture_comes_with_its_consent_while_the_stream_goes_on(api, job):
    """C17, C78, R49: hot, off the frames' path, and never without a consent."""
    kind = {"Content-Type": "image/png"}
    patch(api, job, {"operations": ["detect", "align", "swap"], "source_face": "avatar:fox"})
    api.wait_frames(job, 10)
    path = f"/v1/jobs/{job}/source-face"
    assert api.ask("PUT", path, body=PHOTO.read_bytes(), headers=kind).status == 403
    before = api.ask("GET", f"/v1/jobs/{job}/status").value
    done = api.ask(
        "PUT", f"{path}?consent={CONSENT}&name=eileen", body=PHOTO.read_bytes(), headers=kind
    )
    assert done.status == 200, done.data
    face = done.value["id"]
    status = api.wait_frames(job, 30)
    assert status["token"]["source_face"] == face
    assert status["counts"].get("covered_step_failed", 0) == before["counts"].get(
        "covered_step_failed", 0
    )
    assert api.ask("PUT", path, {"face": "eileen"}).value["id"] == face
    assert api.ask("PUT", path, {"face": "avatar:nobody"}).status in (403, 422)
    wall = np.full((64, 64, 3), 200, np.uint8)
    png = cv2.imencode(".png", wall)[1].tobytes()
    empty = api.ask("PUT", f"{path}?consent={CONSENT}", body=png, headers=kind)
    assert empty.status == 422
    assert (
        api.ask("PUT", path, body=b"no picture", headers={"Content-Type": "text/plain"}).status
        == 415
    )
    assert face in [one["id"] for one in api.ask("GET", "/v1/catalogue").value["faces"]]


def test_outputs_come_and_go(api, job):
    path = f"/v1/jobs/{job}/outputs"
    target = api.folder / "out/added.ts"
    made = api.ask("POST", path, {"url": "added.ts"})
    assert made.status == 201, made.data
    name = made.value["id"]
    assert api.ask("POST", path, {"url": str(target)}).status == 409
    assert api.ask("POST", path, {"url": "ftp://127.0.0.1/x"}).status == 422
    wait_until(lambda: target.exists() and target.stat().st_size > 10_000, 20, "the file")
    assert [one["id"] for one in api.ask("GET", path).value["outputs"]] == [name]
    assert api.ask("DELETE", f"{path}/{name}").status == 204
    assert api.ask("GET", path).value["outputs"] == []
    assert api.ask("DELETE", f"{path}/{name}").status == 404
    api.wait_frames(job, 10)


def test_events_come_a_few_times_a_second_and_end_with_the_job(api):
    spec = {"source": TEST, "operations": []}
    name = api.ask("POST", "/v1/jobs", {"spec": spec, "start": True}).value["id"]
    url = api.server.get_url(f"/v1/jobs/{name}/events") + "&hz=50"
    started = time.monotonic()
    with urllib.request.urlopen(url, timeout=20) as events:
        assert events.headers["Content-Type"].startswith("text/event-stream")
        seen, took_s = 0, 0.0
        kinds = set()
        for line in events:
            if line.startswith(b"event: "):
                kinds.add(line.split()[1])
                seen += line.startswith(b"event: status")
            if line.startswith(b"data: {") and len(line) > 20:
                assert json.loads(line[6:])["job"] == name
            if seen == 8:
                took_s = time.monotonic() - started
                api.ask("POST", f"/v1/jobs/{name}/stop")
    assert kinds == {b"status", b"end"}
    assert took_s > 7 / 5 * 0.9, "never more than 5 a second"
    api.ask("DELETE", f"/v1/jobs/{name}")


def test_job_manager_runs_as_written(tmp_path, face_clip):
    """R45: over real RTSP and RTMP servers, with the names that the requirement uses."""
    with RunningApi(tmp_path) as api, RtspServer(face_clip) as rtsp, NginxRtmp() as nginx:
        job_manager = api.manager
        job_args = {
            "source_paths": ["avatar:robot"],
            "target_path": rtsp.url,
            "output_path": nginx.url("r45"),
            "processors": ["face_detector", "face_swapper", "face_enhancer"],
            "execution_threads": 6,
            "execution_providers": ["CPUExecutionProvider"],
        }
        job_id = job_manager.create_job()
        job_manager.submit_job(job_id, job_args)
        job_manager.start_job(job_id)
        wait_until(lambda: job_manager.get_status(job_id).frames_out > 20, 40, "frames")
        status = job_manager.get_status(job_id)
        assert {"detect", "align", "swap", "enhance"} <= set(status.steps)
        assert status.outputs[0]["connected"]
        assert job_manager.stop_job(job_id)


def test_a_device_that_is_not_there_is_refused(tmp_path):
    """C19, R45: asked for CUDA on a machine without one, the job is not started on the quiet."""
    import onnxruntime

    if (
        "CUDAExecutionProvider" in onnxruntime.get_available_providers()
        and Path("/dev/nvidiactl").exists()
    ):
        pytest.skip("this machine has a graphics card")
    with RunningApi(tmp_path) as api:
        job_id = api.manager.create_job()
        args = {"target_path": TEST, "execution_providers": ["CUDAExecutionProvider"]}
        with pytest.raises(Exception, match="cuda"):
            api.manager.submit_job(job_id, args)
