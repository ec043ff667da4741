"""The daemon's parts that need no process."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time

import msgspec
import pytest
import structlog
from aiohttp.test_utils import make_mocked_request

from livefuse.config import Config, DaemonConfig, RecordConfig, SafetyConfig
from livefuse.control.api.views import Spec
from livefuse.control.daemon.app import OWN, list_routes
from livefuse.control.daemon.checks import get_checked_job, name_check
from livefuse.control.daemon.folder import DaemonFolder
from livefuse.control.daemon.forward import find_url, pick_headers
from livefuse.control.daemon.lives import Life
from livefuse.control.daemon.log import log_line
from livefuse.control.daemon.notify import get_watchdog_s, notify
from livefuse.control.daemon.resume import go_on
from livefuse.control.daemon.worker import Reply, read_problem
from livefuse.errors import JobError, LivefuseError, RefusedError, TokenError
from livefuse.workers.process import JobBeat


def make_config(folder):
    return Config(
        safety=SafetyConfig(folder=str(folder)), daemon=DaemonConfig(folder=str(folder / "d"))
    )


def judge(life, phase, health, reason=""):
    return life.judge(JobBeat(id="a", phase="running", health=health, reason=reason), phase)


def test_a_job_is_well_again_after_two_beats():
    life = Life("a")
    assert judge(life, "loading", "LOADING") is None
    assert judge(life, "loading", "") is None
    assert judge(life, "loading", "ONLINE") == "running"
    assert judge(life, "running", "DEGRADED_INPUT", "the input is lost") == "degraded"
    assert life.reason == "the input is lost"
    assert judge(life, "degraded", "ONLINE") is None
    assert judge(life, "degraded", "ONLINE") == "running"
    assert judge(life, "running", "ERROR", "no output takes the stream") == "degraded"
    assert judge(life, "running", "") == "degraded"
    assert life.reason == "it does not answer"
    assert judge(life, "running", "STOPPED") is None


def test_losses_are_counted_for_a_minute():
    life = Life("a")
    assert [life.count_deaths(at) for at in (0.0, 10.0, 59.0, 61.0, 200.0)] == [1, 2, 3, 3, 1]
    life.begin()
    assert life.count_deaths(201.0) == 1


def test_to_be_stopped_is_more_than_to_be_put_aside():
    life = Life("a")
    life.ask("stop")
    life.ask("drain")
    assert life.asked == "stop"
    assert life.news.is_set()


def test_a_job_goes_on_in_files_of_its_own(tmp_path):
    config = RecordConfig(folder=str(tmp_path), overwrite=True)
    spec = Spec(source="test:", targets=("a.mp4", "rtmp://h/live/key", "b.mkv"))
    placed, note = go_on(spec, config)
    assert placed.targets == (str(tmp_path / "a.mp4"), "rtmp://h/live/key", str(tmp_path / "b.mkv"))
    assert note == ""
    for name in ("a.mp4", "a-2.mp4", "b.mkv"):
        (tmp_path / name).touch()
    placed, note = go_on(spec, config)
    assert placed.targets[0] == str(tmp_path / "a-3.mp4")
    assert placed.targets[2] == str(tmp_path / "b-2.mkv")
    assert note == "goes on in a-3.mp4, b-2.mkv"
    with pytest.raises(RefusedError):
        go_on(Spec(source="test:", targets=("/etc/a.mp4",)), config)


def test_one_daemon_at_a_time_and_none_beside_strangers(tmp_path):
    config = make_config(tmp_path)
    folder = DaemonFolder(config)
    with pytest.raises(JobError, match=f"process {os.getpid()}"):
        DaemonFolder(config)
    assert folder.sockets.stat().st_mode & 0o777 == 0o700
    left = folder.sockets
    os.close(folder._lock)  # as if it had been killed
    hold = (
        "import fcntl, os, sys, time\n"
        f"fd = os.open({str(folder.workers_lock)!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(fd, fcntl.LOCK_SH); print(flush=True); time.sleep(0.5)"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        began = time.monotonic()
        folder = DaemonFolder(config)
        assert time.monotonic() - began > 0.2
        assert stranger.wait(10) == 0
    assert not left.exists()
    folder.close()
    assert not folder.sockets.exists()


def test_what_is_between_two_neighbours_stays_there():
    request = make_mocked_request(
        "GET",
        "/v1/jobs/a%2Fb/live.flv?key=secret&hz=2",
        headers={
            "Host": "h", "Origin": "http://h", "Authorization": "Bearer secret", "Accept": "a/b",
            "Connection": "close, X-Mine", "X-Mine": "1", "TE": "trailers", "If-Match": '"e"',
            "Cookie": "c", "Idempotency-Key": "k",
        },
    )  # fmt: skip
    assert pick_headers(request) == {"Accept": "a/b", "If-Match": '"e"'}
    assert str(find_url(request)) == "http://localhost/v1/jobs/a%2Fb/live.flv?hz=2"


def test_a_workers_problem_is_raised_as_it_was():
    told = {"type": "urn:livefuse:error:TokenError", "title": "t", "status": 422, "detail": "no"}
    error = read_problem(Reply(422, msgspec.json.encode(told | {"hint": "do"})))
    assert isinstance(error, TokenError)
    assert (error.message, error.hint) == ("no", "do")
    odd = told | {"type": "urn:livefuse:error:get_exit_code"}
    assert type(read_problem(Reply(422, msgspec.json.encode(odd)))) is LivefuseError
    assert type(read_problem(Reply(500, b"<html>"))) is LivefuseError


def test_lines_of_workers_are_told_with_their_job():
    with structlog.testing.capture_logs() as told:
        log_line('{"event": "health", "level": "warning", "health": "ERROR"}', 3, {"cam"})
        log_line("Segmentation fault rtmp://h/live/key", 3, {"a", "b"})
    assert told[0]["event"] == "health"
    assert (told[0]["log_level"], told[0]["worker"], told[0]["job"]) == ("warning", 3, "cam")
    assert (told[1]["event"], told[1]["job"]) == ("said", "")
    assert "key" not in told[1]["text"]


@pytest.mark.parametrize("job", ["cam", "x" * 64, "check-1"])
def test_a_look_bears_the_name_of_its_job(job):
    name = name_check(job)
    assert len(name) <= 64
    assert name != name_check(job)
    assert job.startswith(get_checked_job(name))
    assert get_checked_job(job) == job


def test_every_address_has_a_handler_and_what_is_kept_is_ours():
    routes = {(route.method, route.path): route for route in list_routes()}
    assert OWN.keys() <= routes.keys()
    changing = [
        key for key in routes if key[0] in ("PUT", "PATCH", "DELETE") and "/v1/jobs" in key[1]
    ]
    passed_on = {path for key, path in [(k, k[1]) for k in changing] if key not in OWN}
    assert all("/whip/" in path or "/whep/" in path for path in passed_on)


def test_the_service_managers_patience_is_halved(monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert get_watchdog_s() == 1.5
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert get_watchdog_s() is None


def test_life_events_begin_unset():
    async def run():
        life = Life("a")
        assert life.is_over.is_set()
        life.begin()
        assert not life.is_over.is_set()
        assert not life.has_worker.is_set()

    asyncio.run(run())


def test_a_service_manager_that_does_not_listen_holds_nobody_up(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "n"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
        began = time.monotonic()
        for _ in range(2000):
            notify("WATCHDOG=1")
        assert time.monotonic() - began < 30
        assert manager.recv(100) == b"WATCHDOG=1"
