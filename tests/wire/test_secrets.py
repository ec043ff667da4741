"""A password and a stream key that are in use are nowhere to be read (C76)."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.daemons import RunningDaemon
from tests.wire.servers import HOST, NginxRtmp, RtspServer, find_free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

PASSWORD, KEY = "hunter2hunter2", "s3cr3t-str34m-k3y"
SECRETS = (PASSWORD.encode(), KEY.encode())
JOB_PATHS = ("", "/status", "/token", "/outputs")


def find_secrets(data: bytes) -> list[bytes]:
    return [secret for secret in SECRETS if secret in data]


def list_words(pid: int) -> Iterator[tuple[str, bytes]]:
    """Give what everybody on the machine may read of a process and of all that it has started."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for process in processes:
        for name in ("cmdline", "environ", "comm"):
            with contextlib.suppress(OSError):
                yield f"{process.pid} {name}", Path(f"/proc/{process.pid}/{name}").read_bytes()


def ask_everything(daemon: RunningDaemon, *jobs: str) -> Iterator[tuple[str, bytes]]:
    for path in ("/v1/jobs", "/metrics", "/v1/audit", "/readyz"):
        yield path, daemon.ask("GET", path).data
    for job in jobs:
        for path in JOB_PATHS:
            yield f"{job}{path}", daemon.ask("GET", f"/v1/jobs/{job}{path}").data
    url = f"{daemon.url}/v1/jobs/{jobs[0]}/events?key={daemon.key}"
    with urllib.request.urlopen(url, timeout=20) as events:
        yield "events", next(line for line in events if line.startswith(b"data: "))


def read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Give all that lies on the disc: the logs, the jobs, the audit."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()


def test_nothing_tells_a_secret_that_a_daemons_job_uses(face_clip: Path, tmp_path: Path) -> None:
    """(C76) Logs, API, metrics, audit, errors, process list, files; with everything logged."""
    with (
        RtspServer(face_clip, is_looping=True, user="me", password=PASSWORD) as camera,
        NginxRtmp() as server,
        RunningDaemon(tmp_path, "log.level=debug") as daemon,
    ):
        assert PASSWORD in camera.url
        spec = {"source": camera.url, "targets": [server.url(KEY)], "operations": []}
        daemon.run_job(spec, "well")
        wait_until(lambda: server.is_publishing(KEY), 20, "the key is the right one")
        away = f"rtsp://me:{PASSWORD}@{HOST}:{find_free_port()}/x"
        lost = {"source": away, "targets": [f"rtmp://{HOST}:9/live/{KEY}"], "operations": []}
        daemon.ask("POST", "/v1/jobs", {"id": "lost", "spec": lost, "start": True})
        daemon.wait_state("lost", "failed")
        seen = [*list_words(daemon.pid), *ask_everything(daemon, "well", "lost")]
        server.stop()
        wait_until(
            lambda: "refused" in json.dumps(daemon.get_job("well")["statistics"]["outputs"]), 20
        )
        camera.stop()
        daemon.wait_state("well", "degraded")
        seen += [*list_words(daemon.pid), *ask_everything(daemon, "well", "lost")]
    seen += read_files(tmp_path)
    assert len(seen) > 40
    assert [where for where, data in seen if find_secrets(data)] == []
