"""What is done over the API, and what happens by itself, is in the audit log; or it is not done."""

from __future__ import annotations

import errno
import time

import pytest

from livefuse.clock import SystemClock
from livefuse.control import job_watch
from livefuse.safety import audit
from livefuse.safety.audit_check import verify_audit
from livefuse.safety.audit_read import AuditQuery, read_audit
from livefuse.safety.keys import KeyRing
from tests.apis import RunningApi
from tests.contract.repo import ROOT

pytestmark = pytest.mark.wire

PHOTO = ROOT / "tests" / "data" / "astronaut.png"
STREAMER, VIEWER = "key-of-a-streamer", "key-of-a-viewer"
SOURCE = "test:?size=160x120&fps=10"
TARGET = "rtmp://user:word@127.0.0.1:9/app/SECRETKEY"
CONSENT = "Eileen%20Collins%2C%20tests%2C%2090d"
PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
def api(tmp_path):
    with RunningApi(tmp_path, "publish.start=none", "rtmp.connect_timeout_ms=500") as running:
        yield running


def list_records(api, job="", event=""):
    return read_audit(api.manager.worker.audit.folder, AuditQuery(job=job, event=event))


def list_events(api, job):
    return [(record.event, record.who) for record in list_records(api, job)]


def wait_for(api, job, event, count=1, timeout_s=20.0):
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        found = list_records(api, job, event)
        if len(found) >= count:
            return found[-1]
        time.sleep(0.05)
    raise AssertionError(list_events(api, job))


def is_whole(api):
    folder = api.manager.worker.audit.folder
    return verify_audit(folder, KeyRing(folder.parent, SystemClock())).is_whole


def create(api, job, key=STREAMER, **spec):
    wish = {"id": job, "spec": {"source": SOURCE, "operations": ["detect", "blur"]} | spec}
    return api.ask("POST", "/v1/jobs", wish | {"start": True}, key=key)


def patch(api, job, value):
    return api.ask("PATCH", f"/v1/jobs/{job}/token", value, headers=PATCH, key=STREAMER)


def test_the_life_of_a_job(api):
    """(R52) One record for each change of state, none for a frame."""
    assert create(api, "life").status == 201
    api.wait_frames("life", 10)
    wait_for(api, "life", "job.running")
    assert api.ask("POST", "/v1/jobs/life/stop", key=STREAMER).status == 200
    assert api.ask("POST", "/v1/jobs/life/start").status == 200
    assert api.ask("DELETE", "/v1/jobs/life").status == 204
    # A machine that is busy may degrade a job at any time: that is a change of state too.
    told = [each for each in list_events(api, "life") if each[0] != "job.degraded"]
    once = [each for index, each in enumerate(told) if each not in told[:index]]
    assert once == [
        ("job.created", "one"),
        ("job.submitted", "one"),
        ("job.started", "one"),
        ("job.running", "livefuse"),
        ("job.stopping", "one"),
        ("job.stopped", "livefuse"),
        ("job.started", "local"),
        ("job.stopping", "local"),
        ("job.deleted", "local"),
    ]
    assert len(told) <= 14
    assert is_whole(api)


def test_an_output_that_cannot_be_reached(api):
    """(R52, C76) What is logged of its job's life has no secret in it."""
    assert create(api, "far", targets=[TARGET]).status == 201
    api.wait_frames("far", 10)
    assert api.ask("POST", "/v1/jobs/far/stop", key=STREAMER).status == 200
    wait_for(api, "far", "job.stopped")
    started = list_records(api, "far", "job.started")[0].facts
    assert started == {
        "source": SOURCE,
        "outputs": ["rtmp://***@127.0.0.1:9/app/***"],
        "operations": ["detect", "blur"],
        "mode": "live",
    }
    text = b"".join(path.read_bytes() for path in api.manager.worker.audit.folder.glob("*.jsonl"))
    assert b"rtmp://***@127.0.0.1:9/app/***" in text
    assert b"SECRETKEY" not in text
    assert b"word" not in text
    assert is_whole(api)


def test_changes_while_it_runs(api):
    assert create(api, "run").status == 201
    api.wait_frames("run")
    assert (
        patch(api, "run", {"parameters": {"face_size": 128, "enable_gfpgan": True}}).status == 200
    )
    assert patch(api, "run", {"parameters": {"face_size": 128}}).status == 200  # says nothing new
    assert patch(api, "run", {"parameters": {"face_size": -1}}).status == 422
    assert patch(api, "run", {"operations": ["detect"]}).status == 200
    made = api.ask("POST", "/v1/jobs/run/outputs", {"url": TARGET}, key=STREAMER)
    assert made.status == 201
    path = f"/v1/jobs/run/outputs/{made.value['id']}"
    assert api.ask("DELETE", path, key=STREAMER).status == 204
    assert api.ask("POST", "/v1/jobs/run/recording").status in (201, 409)
    changes = [
        (record.event, record.facts)
        for record in list_records(api, "run")
        if not record.event.startswith("job.")
    ]
    assert changes[:4] == [
        ("token.changed", {"parameters": ["face_size=128"]}),
        ("token.changed", {"operations": ["detect"]}),
        ("output.added", {"output": "rtmp://***@127.0.0.1:9/app/***"}),
        ("output.removed", {"output": "rtmp://***@127.0.0.1:9/app/***"}),
    ]
    assert is_whole(api)


def test_a_swap_without_consent_is_refused_and_the_consents_id_is_logged(api):
    """(C78)"""
    spec = {"operations": ["detect", "align", "swap"]}
    refused = create(api, "swap", **spec, source_face="face_0123456789ab")
    assert refused.status == 403
    assert list_records(api, "swap", "job.refused")[0].who == "one"
    assert list_records(api, "swap", "job.started") == []

    assert create(api, "swap", **spec, source_face="avatar:anna").status in (201, 422)
    avatars = api.manager.worker.list_avatars()
    api.ask("DELETE", "/v1/jobs/swap", key=STREAMER)
    assert create(api, "swap", **spec, source_face=f"avatar:{avatars[0]}").status == 201
    started = list_records(api, "swap", "job.started")[-1].facts
    assert started["source_face"] == f"avatar:{avatars[0]}"
    assert started["consent"] == "none needed: a drawn face"

    path, kind = "/v1/jobs/swap/source-face", {"Content-Type": "image/png"}
    api.wait_frames("swap")
    picture = PHOTO.read_bytes()
    before = len(list_records(api, "swap", "source"))
    assert api.ask("PUT", path, body=picture, headers=kind, key=STREAMER).status == 403
    assert list_records(api, "swap", "job.refused")[-1].facts["what"] == "source face"
    assert len(list_records(api, "swap", "source")) == before
    shown = api.ask("PUT", f"{path}?consent={CONSENT}", body=picture, headers=kind)
    assert shown.status == 200, shown.value
    (record,) = api.manager.worker.faces.list_records()
    changed = list_records(api, "swap", "source.changed")[-1]
    assert changed.who == "local"
    assert changed.facts == {
        "source_face": record.face_id,
        "source_face_before": f"avatar:{avatars[0]}",
        "source_face_sha256": record.picture_sha256,
        "consent": record.consent_sha256,
        "consent_of": "Eileen Collins",
    }
    (enrolled,) = list_records(api, event="face.enrolled")
    assert enrolled.who == "local"


def test_operators_read_it(api):
    api.ask("POST", "/v1/jobs", {"id": "a"}, key=STREAMER)
    api.ask("POST", "/v1/jobs", {"id": "b"})
    shown = api.ask("GET", "/v1/audit").value
    assert [record["job"] for record in shown["records"]] == ["a", "b"]
    assert not shown["is_cut"]
    newest = api.ask("GET", "/v1/audit?limit=1").value
    assert [record["job"] for record in newest["records"]] == ["b"]
    assert newest["is_cut"]
    only = api.ask("GET", "/v1/audit?job=a&event=job&since=1h").value["records"]
    assert [record["event"] for record in only] == ["job.created"]
    assert api.ask("GET", "/v1/audit?since=2999-01-01").value["records"] == []
    for key in (STREAMER, VIEWER):
        assert api.ask("GET", "/v1/audit", key=key).status == 403
    for query in ("limit=0", "limit=1000", "limit=ten", "limit=%31%30%30%30%30%30", "since=soon"):
        assert api.ask("GET", f"/v1/audit?{query}").status == 422


class TestFullDisc:
    """What cannot be logged is not done, and what runs is stopped."""

    @pytest.fixture
    def fill(self, monkeypatch):
        def fill():
            def is_full(*_):
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(audit, "add_bytes", is_full)

        return fill

    def test_nothing_begins_and_what_ends_is_told_later(self, api, fill, monkeypatch):
        assert create(api, "old").status == 201
        api.wait_frames("old")
        with monkeypatch.context() as patched:
            patched.setattr(job_watch, "GRACE_NS", 10**15)
            fill()
            for answer in (
                api.ask("POST", "/v1/jobs", {"id": "new"}),
                create(api, "new"),
                patch(api, "old", {"operations": ["detect"]}),
                api.ask("POST", "/v1/jobs/old/outputs", {"url": TARGET}, key=STREAMER),
            ):
                assert answer.status == 503
                assert "audit log" in answer.value["detail"]
                assert answer.value["hint"]
            assert [job["id"] for job in api.ask("GET", "/v1/jobs").value["jobs"]] == ["old"]
            token = api.ask("GET", "/v1/jobs/old/token").value
            assert token["operations"] == ["detect", "blur"]
            assert len(api.ask("GET", "/v1/jobs/old/outputs").value["outputs"]) == 0
            assert api.ask("POST", "/v1/jobs/old/stop").status == 200
        monkeypatch.undo()
        assert create(api, "later").status == 201
        assert [event for event, _ in list_events(api, "old")][-2:] == [
            "job.stopping",
            "job.stopped",
        ]
        assert is_whole(api)

    @pytest.mark.parametrize("when_full", ["stop", "go_on"])
    def test_jobs_that_hide_faces_are_stopped_unless_told_otherwise(
        self, tmp_path, fill, monkeypatch, when_full
    ):
        monkeypatch.setattr(job_watch, "GRACE_NS", 10**8)
        settings = ("publish.start=none", f"audit.when_full={when_full}")
        with RunningApi(tmp_path, *settings) as api:
            assert create(api, "hides").status == 201
            assert create(api, "shows", operations=[]).status == 201
            api.wait_frames("hides")
            api.wait_frames("shows")
            fill()
            assert api.ask("POST", "/v1/jobs", {"id": "new"}).status == 503
            hides, shows = (api.manager.get(name).job for name in ("hides", "shows"))
            assert hides is not None
            assert shows is not None
            if when_full == "go_on":
                assert not hides.wait(3.0)
            else:
                assert hides.wait(20.0)
                view = api.ask("GET", "/v1/jobs/hides").value
                assert view["state"] == "failed"
                assert "audit log" in view["error"]
            assert not shows.wait(0)
            monkeypatch.undo()
