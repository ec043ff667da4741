"""`livefuse top`: a line for each job, and words when nobody answers."""

import http.server
import json
import threading
from typing import Any

import pytest

from livefuse.control.cli import main
from livefuse.errors import EXIT_CODES, ConfigError, DaemonError

KEY = "k" * 24
JOBS: dict[str, Any] = {
    "jobs": [
        {
            "id": "cam",
            "state": "running",
            "error": "",
            "new_field": 1,
            "statistics": {
                "seconds": 9.0,
                "fps_in": 30.0,
                "fps_out": 29.5,
                "dropped": {"late": 3, "pipeline_busy": 4},
                "faces": 2,
                "latency_recent": {"p50_ms": 17.2, "p95_ms": 39.6, "count": 30},
                "bottleneck": "detect",
                "outputs": [{"connected": True}, {"connected": False}],
                "rung": "enhance_off",
                "health": "DEGRADED_INPUT",
                "health_reason": "no picture for 3 s",
            },
        },
        {"id": "next", "state": "queued", "error": "", "statistics": None},
        {"id": "[red]old[/red]", "state": "failed", "error": "no such host", "statistics": None},
    ]
}


class Daemon(http.server.ThreadingHTTPServer):
    """Answers with what it is told to."""

    body = json.dumps(JOBS).encode()
    status = 200


@pytest.fixture
def daemon(monkeypatch):
    """An address that answers as a daemon does, with what it is told to."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            is_let_in = self.headers.get("Authorization") == f"Bearer {KEY}"
            body = server.body if is_let_in else b"{}"
            self.send_response(server.status if is_let_in else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            """Say nothing."""

    server = Daemon(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.delenv("LIVEFUSE_KEY", raising=False)
    monkeypatch.setenv("LIVEFUSE_URL", f"http://127.0.0.1:{server.server_port}/?key={KEY}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_each_job_has_a_line_and_its_trouble_another(daemon, capsys):
    assert main(["top"]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = " ".join(lines[1].split())
    assert said == "cam DEGRADED_INPUT 30.0 29.5 17 40 7 2 1/2 detect enhance_off"
    assert "no picture for 3 s" in lines[2]
    assert lines[3].split() == ["next", "queued"]
    # What others named so is no markup of ours.
    assert lines[4].split() == ["[red]old[/red]", "failed"]
    assert "no such host" in lines[5]


def test_without_jobs_it_says_so(daemon, capsys):
    daemon.body = b'{"jobs": []}'
    assert main(["top", "--once"]) == 0
    assert "no jobs" in capsys.readouterr().out


def test_the_key_may_come_from_the_environment_and_is_never_shown(daemon, capsys, monkeypatch):
    """(C76)"""
    url = f"http://127.0.0.1:{daemon.server_port}"
    assert main(["top", "--url", f"{url}/?key=wrongwrongwrong"]) == EXIT_CODES[ConfigError]
    said = capsys.readouterr().err
    assert "wants another key" in said
    assert "wrongwrong" not in said
    monkeypatch.setenv("LIVEFUSE_KEY", KEY)
    assert main(["top", "--url", url]) == 0


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"<html>", 200, "does not answer as livefuse does"),
        (b'{"detail": "it is ending", "hint": "wait"}', 503, "it is ending"),
        (b"\xff\xfe", 500, "does not answer as livefuse does"),
    ],
)
def test_what_is_no_daemon_is_told_in_a_sentence(daemon, capsys, body, status, words):
    daemon.body, daemon.status = body, status
    assert main(["top"]) == EXIT_CODES[DaemonError]
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_nobody_there_and_odd_options_are_told(capsys, monkeypatch):
    monkeypatch.setenv("LIVEFUSE_URL", "http://127.0.0.1:9")
    assert main(["top"]) == EXIT_CODES[DaemonError]
    assert "cannot be reached" in capsys.readouterr().err
    assert main(["top", "--every", "0"]) == EXIT_CODES[ConfigError]
    assert main(["top", "--url", "ftp://h"]) == EXIT_CODES[ConfigError]


def test_in_a_terminal_it_is_drawn_again_until_stopped(daemon, monkeypatch, capsys):
    """What goes wrong meanwhile is shown, and the next look may succeed."""
    looks = []

    def wait(seconds):
        looks.append(seconds)
        daemon.status = 503 if len(looks) == 1 else 200
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("livefuse.control.commands.top.time.sleep", wait)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["top", "--every", "0.5"]) == 130
    assert looks == [0.5, 0.5, 0.5]
    assert "cam" in capsys.readouterr().out


def test_a_job_that_is_not_at_work_shows_its_state_and_why(daemon, capsys):
    """Figures of the life before are not those of a job that waits; an end is not ONLINE."""
    figures = JOBS["jobs"][0]["statistics"] | {"health": "ONLINE", "health_reason": ""}
    states = {
        "a": ("queued", "it needs about 0.8 cores and 0.1 of 2.0 are free"),
        "b": ("loading", "its worker was lost"),
        "c": ("degraded", "it does not answer"),
        "d": ("stopping", ""),
    }
    jobs = [
        {"id": name, "state": state, "error": "", "reason": reason, "statistics": figures}
        for name, (state, reason) in states.items()
    ]
    daemon.body = json.dumps({"jobs": jobs}).encode()
    assert main(["top"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:3] == ["a queued", states["a"][1]]
    assert lines[3].startswith("b loading 30.0 29.5 ")
    assert lines[4] == "its worker was lost"
    assert lines[5].startswith("c ONLINE ")
    assert lines[6] == "it does not answer"
    assert lines[7].startswith("d stopping ")
