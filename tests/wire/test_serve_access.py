"""`livefuse serve` to those who have a key of it: no way to the network and the files behind it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.daemons import TINY, RunningDaemon

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]
SECRET = "s3cr3tk3yofmine"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    (folder / "media").mkdir()
    media = f'access.media_folders=["{folder / "media"}"]'
    with RunningDaemon(folder, "access.restrict=auto", media) as running:
        yield running


def manage_keys(daemon, *words):
    """Run `livefuse keys` beside the daemon; return what it prints."""
    command = [sys.executable, "-m", "livefuse", "keys", *words]
    command += ["--set", f"safety.folder={daemon.folder / 'safety'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def streamer(daemon):
    return manage_keys(daemon, "create", "--role", "streamer", "--name", "one")


@pytest.mark.parametrize(
    "source",
    [
        "http://169.254.169.254/latest/meta-data/", "rtsp://127.0.0.1:1/x", "rtsp://2130706433/x",
        f"rtmp://u:{SECRET}@localhost/app/{SECRET}", "hls://[::ffff:10.0.0.1]/x.m3u8",
        "http://cam.example\\@127.0.0.1/", "/etc/passwd", "file:///proc/self/environ",
        "replay:/etc/passwd", "concat:/etc/passwd", "async:http://127.0.0.1/", "camera:0",
        "udp://@:5000", "tcp://127.0.0.1:22",
    ],
)  # fmt: skip
def test_what_a_key_does_not_open(daemon, streamer, source):
    wish = {"spec": {**TINY, "source": source}}
    answer = daemon.ask("POST", "/v1/jobs", wish, key=streamer)
    assert answer.status == 422
    assert answer.value["type"].endswith("RefusedError")
    assert SECRET.encode() not in answer.data
    assert SECRET not in daemon.read_log()


def test_targets_too_at_once_and_later(daemon, streamer):
    wish = {"spec": {**TINY, "targets": [f"rtmp://10.0.0.1/app/{SECRET}"]}}
    assert daemon.ask("POST", "/v1/jobs", wish, key=streamer).status == 422
    made = daemon.ask("POST", "/v1/jobs", {"id": "on", "spec": TINY, "start": True}, key=streamer)
    assert made.status == 201
    daemon.wait_frames("on")
    for url in (f"rtmp://127.0.0.1/app/{SECRET}", "rtmp://0x7f.1/a/b", "virtualcam:", "/etc/x.mp4"):
        answer = daemon.ask("POST", "/v1/jobs/on/outputs", {"url": url}, key=streamer)
        assert answer.status == 422
        assert SECRET.encode() not in answer.data
    assert daemon.ask("DELETE", "/v1/jobs/on", key=streamer).status == 204


def test_keys_are_made_and_revoked_while_it_runs(daemon):
    """No restart: the next request knows it, and a stream ends within two seconds."""
    job = daemon.run_job()
    daemon.wait_frames(job)
    viewer = manage_keys(daemon, "create", "--role", "viewer", "--name", "wall")
    assert daemon.ask("GET", f"/v1/jobs/{job}", key=viewer).status == 200
    assert daemon.ask("POST", f"/v1/jobs/{job}/stop", key=viewer).status == 403
    assert daemon.ask("GET", "/v1/audit", key=viewer).status == 403
    manage_keys(daemon, "revoke", "wall")
    began = time.monotonic()
    assert daemon.ask("GET", f"/v1/jobs/{job}", key=viewer).status == 401
    assert time.monotonic() - began < 2
    events = [one["event"] for one in daemon.ask("GET", "/v1/audit").value["records"]]
    assert "key.created" in events
    assert "key.revoked" in events
    assert viewer not in daemon.read_log()
    assert daemon.ask("DELETE", f"/v1/jobs/{job}").status == 204


def test_one_streamer_is_not_told_of_another(daemon, streamer):
    other = manage_keys(daemon, "create", "--role", "streamer", "--name", "two")
    assert daemon.ask("POST", "/v1/jobs", {"id": "mine"}, key=streamer).status == 201
    assert daemon.ask("GET", "/v1/jobs", key=other).value["jobs"] == []
    for method, path in (("GET", ""), ("POST", "/start"), ("DELETE", ""), ("GET", "/snapshot.jpg")):
        assert daemon.ask(method, f"/v1/jobs/mine{path}", key=other).status == 404
    assert daemon.ask("DELETE", "/v1/jobs/mine", key=streamer).status == 204
