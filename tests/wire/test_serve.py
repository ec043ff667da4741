"""The daemon and its workers as real processes: what runs goes on, whatever is killed."""

from __future__ import annotations

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

import psutil
import pytest

from livefuse.clock import SystemClock
from tests.daemons import MERGE, ON_AIR, TINY, RunningDaemon, is_worker, list_family
from tests.wire.servers import NginxRtmp, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

BACK_S = 10.0
"""Within so long a job is on air again; the target of 3 s is tests/kill's, on a machine at rest."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with RunningDaemon(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def job(daemon):
    name = daemon.run_job()
    yield name
    assert daemon.ask("DELETE", f"/v1/jobs/{name}").status in (204, 404)


def test_a_jobs_whole_life(daemon):
    made = daemon.ask("POST", "/v1/jobs", {"id": "whole"})
    assert made.status == 201, made.data
    assert made.value["state"] == "draft"
    assert made.headers["Location"] == "/v1/jobs/whole"
    assert daemon.ask("POST", "/v1/jobs/whole/start").status == 409
    submitted = daemon.ask("PUT", "/v1/jobs/whole/spec", TINY)
    assert (submitted.status, submitted.value["state"]) == (200, "submitted")
    assert daemon.ask("GET", "/v1/jobs/whole/status").status == 409
    started = daemon.ask("POST", "/v1/jobs/whole/start")
    assert started.status == 200, started.data
    assert started.value["state"] in ("loading", *ON_AIR)
    daemon.wait_frames("whole")
    view = daemon.wait_on_air("whole")
    assert view["since_epoch_s"] == pytest.approx(SystemClock().epoch_s(), abs=60)
    again = daemon.ask("POST", "/v1/jobs/whole/start")
    assert (again.status, again.value["detail"]) == (409, "the job whole is running")
    assert daemon.ask("PUT", "/v1/jobs/whole/spec", TINY).status == 409
    stopped = daemon.ask("POST", "/v1/jobs/whole/stop").value
    assert stopped["state"] == "stopped"
    assert stopped["statistics"]["frames_out"] >= view["statistics"]["frames_out"]
    assert daemon.ask("GET", "/v1/jobs/whole/status").value["state"] == "stopped"
    assert daemon.ask("GET", "/v1/jobs/whole/token").status == 409
    assert daemon.ask("POST", "/v1/jobs/whole/start").status == 200
    daemon.wait_frames("whole")
    assert daemon.ask("DELETE", "/v1/jobs/whole").status == 204
    assert daemon.ask("GET", "/v1/jobs/whole").status == 404


def test_what_a_worker_refuses_is_refused_in_its_words(daemon):
    bad = daemon.ask("POST", "/v1/jobs", {"id": "bad", "spec": TINY | {"operations": ["juggle"]}})
    assert bad.status == 422
    assert "juggle" in bad.value["detail"]
    assert bad.value["type"].endswith("TokenError")
    assert daemon.ask("GET", "/v1/jobs/bad").status == 404
    lost = daemon.ask("POST", "/v1/jobs", {"id": "f", "spec": TINY | {"targets": ["/x/a.mp4"]}})
    assert lost.status == 422
    assert daemon.ask("GET", "/v1/jobs").value == {"jobs": []}


def test_two_jobs_run_in_two_workers(daemon):
    names = [daemon.run_job(), daemon.run_job()]
    pids = {daemon.find_worker(name) for name in names}
    assert len(pids) == 2
    listed = {one["id"]: one["state"] for one in daemon.ask("GET", "/v1/jobs").value["jobs"]}
    assert sorted(listed) == sorted(names)
    assert set(listed.values()) <= set(ON_AIR)
    metrics = daemon.ask("GET", "/metrics").data.decode()
    for name in names:
        assert f'livefuse_frames_total{{job_id="{name}",side="out"}}' in metrics
        assert daemon.ask("DELETE", f"/v1/jobs/{name}").status == 204
    assert metrics.count("# TYPE livefuse_frames_total counter") == 1
    counts = re.findall(r'^livefuse_daemon_jobs{phase="(\w+)"} (\d+)', metrics, re.MULTILINE)
    assert sum(int(count) for _, count in counts) == 2
    assert sum(int(count) for phase, count in counts if phase in ON_AIR) == 2


def test_streams_and_pictures_come_through(daemon, job):
    url = f"{daemon.url}/v1/jobs/{job}/live.flv?key={daemon.key}"
    with urllib.request.urlopen(url, timeout=20) as stream:
        assert stream.headers["Content-Type"] == "video/x-flv"
        assert stream.read(3) == b"FLV"
        assert len(stream.read(2000)) == 2000
    picture = daemon.ask("GET", f"/v1/jobs/{job}/snapshot.jpg")
    assert picture.headers["Content-Type"] == "image/jpeg"
    assert picture.data[:2] == b"\xff\xd8"
    # Whoever hangs up is gone at the worker, too.
    wait_until(
        lambda: not any(o["viewers"] for o in daemon.get_job(job)["statistics"]["outputs"]), 10
    )


@contextlib.contextmanager
def watching(daemon, name):
    url = f"{daemon.url}/v1/jobs/{name}/events?key={daemon.key}&hz=5"
    with urllib.request.urlopen(url, timeout=20) as events:
        yield events


def read_kinds(events):
    return [line.split()[1].decode() for line in events if line.startswith(b"event: ")]


def read_start(events):
    """The next event's mark of one start of the job."""
    line = next(line for line in events if line.startswith(b"data: "))
    return json.loads(line[6:])["token"]["request_id"]


def test_events_outlive_a_worker_and_end_with_the_job(daemon):
    name = daemon.run_job()
    with watching(daemon, name) as events:
        assert events.readline() == b"event: status\n"
        before = read_start(events)
        os.kill(daemon.find_worker(name), signal.SIGKILL)
        while read_start(events) == before:
            pass  # until the next worker's come
        assert daemon.get_job(name)["restarts"] == 1
        threading.Thread(target=daemon.ask, args=("POST", f"/v1/jobs/{name}/stop")).start()
        assert read_kinds(events)[-1] == "end"
    with watching(daemon, name) as events:
        assert read_kinds(events) == ["status", "end"]
    daemon.ask("DELETE", f"/v1/jobs/{name}")


@pytest.mark.parametrize("way", ["whip", "whep"])
def test_offers_get_the_workers_answer(daemon, job, way):
    said = {"Content-Type": "application/sdp"}
    bad = daemon.ask("POST", f"/v1/jobs/{job}/{way}", body=b"v=0\r\nnonsense", headers=said)
    assert 400 <= bad.status < 500
    assert bad.value["detail"]
    shown = daemon.ask("OPTIONS", f"/v1/jobs/{job}/{way}")
    assert (shown.status, shown.headers["Accept-Post"]) == (204, "application/sdp")


def test_a_camera_is_awaited_by_a_job_that_loads(daemon):
    spec = {"source": "whip:", "operations": []}
    made = daemon.ask("POST", "/v1/jobs", {"id": "cam", "spec": spec, "start": True})
    assert (made.status, made.value["state"]) == (201, "loading")
    said = {"Content-Type": "application/sdp"}
    bad = daemon.ask("POST", "/v1/jobs/cam/whip", body=b"v=0\r\nnonsense", headers=said)
    assert 400 <= bad.status < 500
    assert "starting" not in bad.value["detail"]
    assert daemon.ask("DELETE", "/v1/jobs/cam").status == 204


def test_a_large_body_is_refused_and_not_held(daemon, job):
    said = {"Content-Type": "image/png"}
    path = f"/v1/jobs/{job}/source-face"
    answer = daemon.ask("PUT", path, body=bytes(40 << 20), headers=said)
    assert answer.status == 413
    assert psutil.Process(daemon.pid).memory_info().rss < 400 << 20


def test_a_worker_that_is_killed_is_replaced(daemon, job):
    patched = daemon.ask(
        "PATCH", f"/v1/jobs/{job}/token", {"parameters": {"blend_ratio": 0.25}}, headers=MERGE
    )
    assert (patched.status, patched.value["parameters"]["blend_ratio"]) == (200, 0.25)
    daemon.wait_spare()
    pid = daemon.find_worker(job)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: daemon.find_worker(job) != pid, BACK_S)
    daemon.wait_frames(job, 1, BACK_S)
    print(f"back on air after {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < BACK_S
    view = daemon.get_job(job)
    assert view["restarts"] == 1
    assert view["spec"]["parameters"]["blend_ratio"] == 0.25
    token = daemon.ask("GET", f"/v1/jobs/{job}/token").value
    assert token["parameters"]["blend_ratio"] == 0.25
    records = daemon.ask("GET", f"/v1/audit?job={job}").value["records"]
    events = [record["event"] for record in records]
    assert events.count("job.started") == 2
    for event in ("job.created", "job.submitted", "token.changed", "job.lost"):
        assert events.count(event) == 1, event


def test_a_worker_that_hangs_is_replaced_and_two_losses_are_enough(tmp_path):
    with RunningDaemon(tmp_path, "daemon.silence_s=1.5", "daemon.max_deaths_per_min=2") as daemon:
        name = daemon.run_job()
        first = daemon.find_worker(name)
        os.kill(first, signal.SIGSTOP)
        wait_until(lambda: daemon.find_worker(name) != first, 30)
        assert not psutil.pid_exists(first)
        assert "it said nothing for" in daemon.read_log()
        daemon.wait_frames(name)
        os.kill(daemon.find_worker(name), signal.SIGKILL)
        view = daemon.wait_state(name, "failed")
        assert "2 workers within a minute" in view["error"]
        assert view["error_type"] == "JobError"
        assert daemon.ask("POST", f"/v1/jobs/{name}/start").status == 200
        daemon.wait_frames(name)


def test_outputs_are_kept_and_nothing_publishes_beside_us(tmp_path):  # noqa: PLR0915 - one story
    """Daemon killed: its jobs are silent within two seconds, and the next one goes on with them."""
    with NginxRtmp() as nginx:
        daemon = RunningDaemon(tmp_path).start()
        first, second = nginx.url("one-key77"), nginx.url("two-key77")
        name = daemon.run_job(TINY | {"targets": [first]}, "push")
        added = daemon.ask("POST", f"/v1/jobs/{name}/outputs", {"url": second})
        assert added.status == 201, added.data
        wait_until(lambda: nginx.is_publishing("one-key77"), 15)
        wait_until(lambda: nginx.is_publishing("two-key77"), 15)
        family = list_family(daemon.pid)
        assert len(family) >= 3  # the worker, its two senders
        for process in [psutil.Process(daemon.pid), *family]:
            assert "key77" not in " ".join(process.cmdline())
        daemon.kill()
        deadline = time.monotonic() + 2
        while any(p.is_running() and p.status() != "zombie" for p in family):
            assert time.monotonic() < deadline, family
            time.sleep(0.02)
        wait_until(lambda: not nginx.is_publishing("one-key77"), 2)
        daemon.start()
        wait_until(lambda: nginx.is_publishing("one-key77"), 30)
        wait_until(lambda: nginx.is_publishing("two-key77"), 30)
        view = daemon.wait_on_air(name)
        assert len(view["spec"]["targets"]) == 2
        assert "key77" not in json.dumps(view) + daemon.read_log()
        outputs = daemon.ask("GET", f"/v1/jobs/{name}/outputs").value["outputs"]
        stale = added.value["id"]
        assert stale not in [output["id"] for output in outputs]
        assert daemon.ask("DELETE", f"/v1/jobs/{name}/outputs/{stale}").status == 404
        gone = outputs[1]["id"]
        assert daemon.ask("DELETE", f"/v1/jobs/{name}/outputs/{gone}").status == 204
        assert len(daemon.get_job(name)["spec"]["targets"]) == 1
        assert daemon.stop() == 0


def test_one_folder_one_daemon(daemon):
    other = RunningDaemon(daemon.folder)
    process = other.launch()
    assert process.wait(40) == 30
    assert "another livefuse serve has the folder" in other.read_log()
    assert str(daemon.pid) in other.read_log()
    assert daemon.ask("GET", "/healthz").status == 200


def test_it_drains_and_the_next_goes_on_in_another_file(tmp_path):
    daemon = RunningDaemon(tmp_path).start()
    name = daemon.run_job(TINY | {"targets": ["cam.mp4"]})
    draft = daemon.ask("POST", "/v1/jobs").value["id"]
    daemon.wait_frames(name, 12)
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 15
    assert re.search(r"\?key=lfk_\S{20,}", daemon.read_log())
    first = tmp_path / "out" / "cam.mp4"
    assert count_frames(first) >= 10
    before = first.read_bytes()
    daemon.start()
    assert "key=" not in daemon.out_path.read_text()
    assert daemon.ask("GET", "/v1/jobs", key="wrong-key-wrong-key").status == 401
    daemon.wait_frames(name, 12)
    view = daemon.get_job(name)
    assert view["reason"] == "goes on in cam-2.mp4"
    assert [output["url"] for output in view["statistics"]["outputs"]] == [
        str(tmp_path / "out" / "cam-2.mp4")
    ]
    assert daemon.get_job(draft)["state"] == "draft"
    os.kill(daemon.find_worker(name), signal.SIGKILL)
    wait_until((tmp_path / "out" / "cam-3.mp4").exists, 30)
    daemon.wait_frames(name, 5)
    stopped = daemon.ask("POST", f"/v1/jobs/{name}/stop").value
    assert stopped["state"] == "stopped"
    assert daemon.stop() == 0
    assert first.read_bytes() == before
    for number in (2, 3):
        assert count_frames(tmp_path / "out" / f"cam-{number}.mp4") >= 2
    daemon.start()
    assert daemon.get_job(name)["state"] == "stopped"
    assert daemon.stop() == 0


def count_frames(path):
    import av

    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def test_while_it_ends_nothing_begins(tmp_path, monkeypatch):
    """Its service manager is told, too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "n"))
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
        monkeypatch.setenv("WATCHDOG_USEC", "600000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        said: list[bytes] = []

        def listen():
            while b"STOPPING=1" not in said:
                said.append(manager.recv(100))

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        daemon = RunningDaemon(tmp_path, "daemon.drain_s=8", "http.require_key=false").start()
        name = daemon.run_job()
        os.kill(daemon.find_worker(name), signal.SIGSTOP)  # it cannot be closed in order
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: daemon.ask("GET", "/readyz").status == 503, 5)
        refused = daemon.ask("POST", "/v1/jobs", {"spec": TINY, "start": True})
        assert refused.status == 503
        assert refused.headers["Retry-After"]
        assert daemon.process.wait(20) == 0
        daemon.process = None
        listening.join(10)
    assert b"READY=1" in said
    assert said.count(b"WATCHDOG=1") >= 2
    assert not [p for p in psutil.process_iter() if is_worker(p) and p.ppid() == 1]


def test_a_second_signal_ends_at_once(tmp_path):
    daemon = RunningDaemon(tmp_path).start()
    name = daemon.run_job()
    family = list_family(daemon.pid)
    os.kill(daemon.find_worker(name), signal.SIGSTOP)
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(5) == 130
    daemon.process = None
    wait_until(lambda: not any(p.is_running() and p.status() != "zombie" for p in family), 3)


def test_a_request_that_comes_again_is_answered_alike(daemon):
    wish = {"spec": TINY, "start": True}
    once = {"Idempotency-Key": "cam-1"}
    first = daemon.ask("POST", "/v1/jobs", wish, headers=once)
    second = daemon.ask("POST", "/v1/jobs", wish, headers=once)
    assert first.status == second.status == 201
    assert first.data == second.data
    assert first.headers["Location"] == second.headers["Location"]
    assert len(daemon.ask("GET", "/v1/jobs").value["jobs"]) == 1
    other = daemon.ask("POST", "/v1/jobs", {"spec": TINY}, headers=once)
    assert (other.status, "another request" in other.value["detail"]) == (409, True)
    name = first.value["id"]
    starts = [
        daemon.ask("POST", f"/v1/jobs/{name}/stop", headers={"Idempotency-Key": "s"}).data
        for _ in range(2)
    ]
    assert starts[0] == starts[1]
    refused = daemon.ask("POST", "/v1/jobs", headers={"Idempotency-Key": "x" * 300})
    assert refused.status == 422
    assert daemon.ask("DELETE", f"/v1/jobs/{name}").status == 204


SCRIPT = """
from livefuse import job_manager
job = job_manager.create_job("script")
job_manager.submit_job(job, {"target_path": "test:?size=160x120&fps=10", "processors": []})
job_manager.start_job(job)
print(job_manager.list_jobs(), job_manager.get_status(job).state)
print(job_manager.stop_job(job))
"""


def test_a_program_elsewhere_runs_jobs_here(daemon):
    """R45 with LIVEFUSE_URL."""
    env = {**os.environ, "LIVEFUSE_URL": f"{daemon.url}/?key={daemon.key}"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=env,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr + daemon.read_log()
    assert "script" in done.stdout
    assert done.stdout.endswith("True\n")
    assert daemon.get_job("script")["state"] == "stopped"
    assert daemon.ask("DELETE", "/v1/jobs/script").status == 204
