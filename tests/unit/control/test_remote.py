"""`job_manager` of a daemon: its requests, its errors, what it tries again, what it never tells."""

import hashlib
import http.server
import json
import threading
from typing import Any

import pytest

from livefuse import errors
from livefuse.control.programs import create_default_manager
from livefuse.control.remote import RemoteJobManager, connect_manager
from livefuse.errors import (
    ConfigError,
    ConsentError,
    DaemonAuthError,
    DaemonError,
    IngestAuthError,
    JobCapacityError,
    JobError,
    JobNotFoundError,
    RefusedError,
    TokenError,
)
from tests.faces import ASTRONAUT

KEY = "hunter2hunter2"
LINKS = dict.fromkeys(("flv", "ts", "snapshot", "whip", "whep", "events"), "/x")
PROBLEM = "application/problem+json"


def view(state="draft", **changes):
    parts = {"id": "j", "state": state, "error": "", "spec": None, "statistics": None}
    return {**parts, "links": LINKS, **changes}


def problem(status, kind="", detail="as it is", hint="do it"):
    name = f"urn:livefuse:error:{kind}" if kind else "about:blank"
    value = {"type": name, "title": "x", "status": status, "detail": detail, "hint": hint}
    return status, value, PROBLEM


class Daemon:
    """Answers from a script, one entry a request: (status, value[, type]); None hangs up."""

    def __init__(self):
        self.seen: list[Any] = []
        self.script: list[Any] = []
        daemon = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                value = json.loads(data) if data else None
                daemon.seen.append((self.command, self.path, value, dict(self.headers)))
                step = daemon.script.pop(0) if len(daemon.script) > 1 else daemon.script[0]
                if step is None:
                    self.close_connection = True
                    return
                status, value, kind = (*step, "application/json")[:3]
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.answer()

            def do_POST(self):
                self.answer()

            def do_PUT(self):
                self.answer()

            def do_DELETE(self):
                self.answer()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def say(self, *steps):
        self.script = list(steps)
        self.seen.clear()


@pytest.fixture(scope="module")
def running():
    daemon = Daemon()
    yield daemon
    daemon.close()


@pytest.fixture
def daemon(running, monkeypatch):
    monkeypatch.setattr("livefuse.control.remote._PAUSE_S", 0.01)
    monkeypatch.setattr("livefuse.control.remote._LOOK_S", 0.01)
    return running


@pytest.fixture
def manager(daemon):
    one = connect_manager(daemon.url, KEY)
    yield one
    one.close()


def test_the_environment_chooses_the_daemon(daemon, monkeypatch):
    monkeypatch.setenv("LIVEFUSE_URL", f"{daemon.url}/?key={KEY}")
    manager = create_default_manager()
    assert isinstance(manager, RemoteJobManager)
    daemon.say((200, {"jobs": [view(), view(id="k")]}))
    assert manager.list_jobs() == ["j", "k"]
    assert daemon.seen[0][3]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(manager)
    monkeypatch.setenv("LIVEFUSE_KEY", "another-key-that-is-set")
    other = create_default_manager()
    other.list_jobs()
    assert daemon.seen[1][3]["Authorization"] == "Bearer another-key-that-is-set"
    manager.close()
    other.close()
    monkeypatch.setenv("LIVEFUSE_URL", f"127.0.0.1/?key={KEY}")
    with pytest.raises(ConfigError) as caught:
        create_default_manager()
    assert KEY not in str(caught.value)


def test_job_args_become_a_spec(manager, daemon, tmp_path, monkeypatch):
    """R45's words: names of other programs, a picture by its digest, a file by its whole path."""
    daemon.say((200, view("submitted")))
    (tmp_path / "in.mp4").touch()
    monkeypatch.chdir(tmp_path)
    manager.submit_job(
        "j",
        {
            "source_paths": [str(ASTRONAUT)],
            "target_path": "in.mp4",
            "output_path": "out.mp4",
            "processors": ["face_detector", "face_swapper", "face_enhancer"],
            "execution_threads": 6,
            "execution_providers": ["CUDAExecutionProvider"],
        },
    )
    method, path, spec, _ = daemon.seen[0]
    assert (method, path) == ("PUT", "/v1/jobs/j/spec")
    assert spec == {
        "source": str(tmp_path / "in.mp4"),
        "targets": ["out.mp4"],
        "operations": ["detect", "align", "swap", "enhance"],
        "source_face": f"sha256:{hashlib.sha256(ASTRONAUT.read_bytes()).hexdigest()}",
        "parameters": {},
        "execution_providers": ["CUDAExecutionProvider"],
        "execution_threads": 6,
    }


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"target": "x"}, ConfigError),
        ({"target_path": "x", "processors": ["face_swaper"]}, TokenError),
        ({"target_path": "x", "source_paths": ["a", "b"]}, RefusedError),
    ],
)
def test_what_is_wrong_in_itself_is_never_sent(manager, daemon, args, error):
    daemon.say((500, {}))
    with pytest.raises(error):
        manager.submit_job("j", args)
    assert daemon.seen == []


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (problem(403, "ConsentError"), ConsentError),
        (problem(502, "IngestAuthError"), IngestAuthError),
        (problem(404, "JobNotFoundError"), JobNotFoundError),
        (problem(409), JobError),
        (problem(401), DaemonAuthError),
        (problem(403), DaemonAuthError),
        (problem(429), JobCapacityError),
        (problem(418, "TeapotError"), DaemonError),
        (problem(422, "LaterError"), ConfigError),
        (problem(500, "LivefuseError"), errors.LivefuseError),
        ((404, b"<html>"), JobNotFoundError),
        ((200, b"<html>"), DaemonError),
        ((200, {"id": 1}), DaemonError),
        ((302, b""), DaemonError),
    ],
)
def test_a_problem_is_the_error_that_it_was_there(manager, daemon, step, error):
    daemon.say(step)
    with pytest.raises(errors.LivefuseError) as caught:
        manager.create_job()
    assert type(caught.value) is error
    assert KEY not in str(caught.value)


def test_every_error_of_the_tree_comes_back_as_itself(manager, daemon):
    for kind, status in errors.HTTP_STATUSES.items():
        daemon.say(problem(status, kind.__name__, detail="what happened", hint="what to do"))
        with pytest.raises(errors.LivefuseError) as caught:
            manager.list_jobs()
        assert type(caught.value) is kind
        assert (caught.value.message, caught.value.hint) == ("what happened", "what to do")


@pytest.mark.parametrize("lost", [None, (502, b"<html>"), (504, b"")])
def test_what_got_no_answer_is_asked_again_as_the_same(manager, daemon, lost):
    daemon.say(lost, lost, (201, view()))
    assert manager.create_job() == "j"
    ids = {request[2]["id"] for request in daemon.seen}
    keys = {request[3]["Idempotency-Key"] for request in daemon.seen}
    assert len(daemon.seen) == 3
    assert len(ids) == len(keys) == 1
    manager.create_job()
    assert daemon.seen[-1][3]["Idempotency-Key"] not in keys


def test_after_three_times_it_is_told(manager, daemon):
    daemon.say(None)
    with pytest.raises(DaemonError, match=r"127\.0\.0\.1"):
        manager.list_jobs()
    assert len(daemon.seen) == 3


def test_what_livefuse_said_itself_is_not_asked_again(manager, daemon):
    daemon.say(problem(502, "IngestConnectError"))
    with pytest.raises(errors.IngestConnectError):
        manager.start_job("j")
    assert len(daemon.seen) == 1


def statistics(state):
    numbers = dict.fromkeys(("seconds", "fps_in", "fps_out", "frames_in", "frames_out", "faces"), 0)
    times = {"p50_ms": 0, "p95_ms": 0, "p99_ms": 0, "count": 0}
    texts = {"job": "j", "state": state, "source": "x", "bottleneck": "", "new_one": 1}
    empty: dict[str, Any] = {
        "dropped": {},
        "counts": {},
        "steps": {},
        "outputs": [],
        "notes": [],
        "media": {},
    }
    return {**numbers, **texts, **empty, "latency": times, "latency_recent": times}


def test_starting_waits_until_it_runs(manager, daemon):
    daemon.say(
        (200, view("queued")),
        (200, view("loading")),
        (200, view("running", statistics=statistics("connecting"))),
        (200, view("running", statistics=statistics("running"))),
    )
    manager.start_job("j")
    assert len(daemon.seen) == 4
    daemon.say((200, view("loading")))
    manager.start_job("j", timeout_s=0)
    assert len(daemon.seen) == 1
    manager.start_job("j", timeout_s=0.05)


def test_a_job_that_cannot_start_raises_why(manager, daemon):
    failed = view("failed", error="the camera wants a password", error_type="IngestAuthError")
    daemon.say((200, view("loading")), (200, failed))
    with pytest.raises(IngestAuthError, match="password"):
        manager.start_job("j")
    daemon.say((200, view("loading")), (200, view("failed", error="so it was")))
    with pytest.raises(JobError, match="so it was"):
        manager.start_job("j")


@pytest.mark.parametrize("figures", [None, "stopping", "failed"])
def test_a_start_that_is_about_to_fail_is_waited_for(manager, daemon, figures):
    """The state was looked at before the end, the figures after it, or they came too late."""
    ending = view("running", statistics=figures and statistics(figures))
    failed = view("failed", error="the camera wants a password", error_type="IngestAuthError")
    daemon.say((200, view("loading")), (200, ending), (200, failed))
    with pytest.raises(IngestAuthError, match="password"):
        manager.start_job("j")


def test_stopping_and_waiting(manager, daemon):
    daemon.say((200, view("stopping")), (200, view("stopping")), (200, view("stopped")))
    assert manager.stop_job("j")
    assert daemon.seen[0][:2] == ("POST", "/v1/jobs/j/stop")
    daemon.say((200, view("running")))
    assert not manager.wait_job("j", 0.05)
    assert not manager.stop_job("j", 0.05)
    daemon.say((200, view("failed")))
    assert manager.wait_job("j")


def test_status_and_deletion(manager, daemon):
    daemon.say((200, statistics("live")))
    assert manager.get_status("j").state == "live"
    daemon.say((204, b""))
    manager.delete_job("a/b")
    assert daemon.seen[0][:2] == ("DELETE", "/v1/jobs/a%2Fb")
    with pytest.raises(JobError):
        manager.delete_job("")
