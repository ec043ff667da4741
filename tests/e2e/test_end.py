"""The end of a process whose API is busy: in order, in time, whatever is being asked."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from tests.contract.repo import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

SMALL = ("--set", "ingest.canvas=320x180", "--set", "http.port=0")
SPEC = {"source": "test:?size=160x120&fps=10", "operations": ["detect", "blur"]}


def ask(url, value=None):
    body = json.dumps(value).encode() if value is not None else None
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


@contextlib.contextmanager
def running(folder):
    """A job that writes out.mp4: yields the process, its address, and the key as a query."""
    command = [sys.executable, "-m", "livefuse", "run", "--from", "demo:", "--to", "out.mp4"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder)}
    with subprocess.Popen(
        [*command, *SMALL],
        cwd=folder,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            while not (found := re.search(r"(http://\S+?)/(\?key=\S+)", process.stdout.readline())):
                assert process.poll() is None, process.stderr.read()
            yield process, found[1], found[2]
        finally:
            process.kill()


@contextlib.contextmanager
def keeping_busy(base, key):
    """A player, a watcher, a body that trickles, and jobs that are made one after the other."""
    over = threading.Event()

    def start_more():
        while not over.is_set():
            with contextlib.suppress(OSError, urllib.error.URLError):
                ask(f"{base}/v1/jobs{key}", {"spec": SPEC, "start": True})

    with contextlib.ExitStack() as stack:
        stack.callback(over.set)
        for path in ("events", "live.flv"):
            stream = urllib.request.urlopen(f"{base}/v1/jobs/main/{path}{key}", timeout=20)
            stack.callback(stream.close)
            stream.read(10)
        port = int(base.rpartition(":")[2])
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        head = f"POST /v1/jobs{key} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n"
        slow.sendall(f'{head}Content-Type: application/json\r\n\r\n{{"id"'.encode())
        threading.Thread(target=start_more, daemon=True).start()
        while len(json.loads(ask(f"{base}/v1/jobs{key}"))["jobs"]) < 3:
            time.sleep(0.05)
        yield


def test_a_job_that_is_deleted_ends_its_run(tmp_path):
    """By the API, as if it had been stopped: the run was for it alone."""
    with running(tmp_path) as (process, base, key):
        while not json.loads(ask(f"{base}/v1/jobs/main/status{key}"))["frames_out"]:
            time.sleep(0.05)
        request = urllib.request.Request(f"{base}/v1/jobs/main{key}", method="DELETE")
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 204
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert (tmp_path / "out.mp4").stat().st_size > 1000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_requests_run_ends_it_in_order(number, tmp_path):
    """Exit 0 within ten seconds, and a file that can be played."""
    with running(tmp_path) as (process, base, key), keeping_busy(base, key):
        began = time.monotonic()
        process.send_signal(number)
        rest, errors = process.communicate(timeout=30)
        took_s = time.monotonic() - began
    assert process.returncode == 0, errors
    assert took_s < 10
    assert "Traceback" not in errors + rest
    assert key[5:] not in errors
    assert (tmp_path / "out.mp4").stat().st_size > 1000
