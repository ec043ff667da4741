"""Who watches a daemon: its log as JSON, its metrics, its jobs in a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.daemons import TINY, RunningDaemon

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.wire
BLUR = {**TINY, "operations": ["detect", "blur"]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    folder = tmp_path_factory.mktemp("watched")
    settings = ("log.form=json", "daemon.jobs_per_worker=2", "daemon.spare_workers=1")
    with RunningDaemon(folder, *settings) as running:
        yield running


def read_lines(daemon: RunningDaemon, event: str, job: str) -> list[dict[str, object]]:
    """Return what was logged; every line has to be JSON."""
    lines = [json.loads(line) for line in daemon.err_path.read_text().splitlines()]
    return [line for line in lines if (line["event"], line.get("job")) == (event, job)]


def wait_line(daemon: RunningDaemon, event: str, job: str, **facts: object) -> dict[str, object]:
    deadline = time.monotonic() + 30
    while True:
        for line in read_lines(daemon, event, job):
            if facts.items() <= line.items():
                return line
        assert time.monotonic() < deadline, daemon.read_log()
        time.sleep(0.1)


def top(daemon: RunningDaemon) -> list[list[str]]:
    """Return the words of each line that `livefuse top` draws."""
    env = {**os.environ, "LIVEFUSE_URL": daemon.url, "LIVEFUSE_KEY": daemon.key}
    command = [sys.executable, "-m", "livefuse", "top", "--once"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def test_every_line_about_a_job_names_it_and_who_acts(daemon: RunningDaemon) -> None:
    """Two jobs in one worker are told apart, what FFmpeg says of an output included."""
    dead = "rtmp://127.0.0.1:9/live/hunter2"
    daemon.run_job({**BLUR, "targets": [dead]}, "one")
    daemon.run_job(BLUR, "two")
    taken = wait_line(daemon, "job taken", "one")
    assert wait_line(daemon, "job taken", "two")["worker"] == taken["worker"]
    assert (taken["module"], taken["level"], taken["who"]) == ("jobs", "info", "first")
    for name in ("one", "two"):
        line = wait_line(daemon, "input", name, state="live")
        assert (line["worker"], line["module"]) == (taken["worker"], "job")
    wait_line(daemon, "health", "two", health="ONLINE")
    assert daemon.ask("POST", "/v1/jobs/two/stop").status == 200
    assert wait_line(daemon, "job stops", "two")["who"] == "first"
    assert all("timestamp" in line for line in read_lines(daemon, "health", "one"))
    assert "hunter2" not in daemon.err_path.read_text()


def wait_rows(daemon: RunningDaemon, **healths: str) -> dict[str, list[str]]:
    """Ask `livefuse top` until it tells these healths; return each job's words."""
    deadline = time.monotonic() + 30
    while True:
        rows = {line[0]: line[1:] for line in top(daemon)}
        if all(rows[name][:1] == [health] for name, health in healths.items()):
            return rows
        assert time.monotonic() < deadline, (rows, daemon.read_log())


def test_top_shows_a_daemons_jobs_as_they_are(daemon: RunningDaemon) -> None:
    """One that is fine, one whose server is gone, one that has failed, one not yet begun."""
    daemon.run_job(TINY, "fine")
    cut = {**TINY, "targets": ["rtmp://127.0.0.1:9/live/hunter2"]}
    assert daemon.ask("POST", "/v1/jobs", {"id": "cut", "spec": cut, "start": True}).status == 201
    lost = {**TINY, "source": "rtmp://127.0.0.1:9/live/hunter2"}
    made = daemon.ask("POST", "/v1/jobs", {"id": "lost", "spec": lost, "start": True})
    assert made.status == 201, made.data
    assert daemon.ask("POST", "/v1/jobs", {"id": "draft"}).status == 201
    daemon.wait_frames("fine")
    daemon.wait_state("lost", "failed")
    daemon.wait_state("cut", "degraded")
    # What a busy machine does to a job for a while is not what this is about.
    rows = wait_rows(daemon, fine="ONLINE", cut="ERROR")
    assert float(rows["fine"][2]) > 0
    assert rows["draft"] == ["draft"]
    assert rows["lost"][0] == "failed"
    assert "0/1" in rows["cut"]
    said = [" ".join(line) for line in top(daemon)]
    assert any("refused the connection" in line for line in said)
    reason = daemon.get_job("cut")["reason"]
    assert reason
    assert any(line.startswith(reason) for line in said)
    assert all("hunter2" not in word for line in rows.values() for word in line)


def test_metrics_of_workers_and_of_the_daemon_do_not_clash(daemon: RunningDaemon) -> None:
    daemon.wait_spare()
    text = daemon.ask("GET", "/metrics").data.decode()
    assert "hunter2" not in text  # (C76)
    samples = [line for line in text.splitlines() if line and not line.startswith("#")]
    series = [line.rpartition(" ")[0] for line in samples]
    assert len(set(series)) == len(series)
    heads = [line.split(" ", 3)[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(set(heads)) == len(heads)
    own = [one for one in series if one.startswith("process_resident_memory_bytes")]
    (answering,) = re.findall(r"^livefuse_daemon_workers_answering (\d+)", text, re.MULTILINE)
    assert len(own) == 1 + int(answering) >= 3
    assert 'process_resident_memory_bytes{worker="daemon"}' in own
    assert 'livefuse_audit_records_total{worker="daemon",event="daemon.started"} 1.0' in samples
    assert "livefuse_daemon_epoch 1.0" in samples
    (free,) = [line for line in samples if line.startswith('livefuse_daemon_cores{kind="free"}')]
    assert 0 <= float(free.split()[1]) <= (os.cpu_count() or 1)
