"""A daemon that is told (SIGHUP) that its configuration has changed, as real processes."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Self

import cv2
import numpy as np
import pytest

from tests.daemons import ON_AIR, TINY, RunningDaemon
from tests.wire.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]
BLURRED = {
    "source": "demo:?size=320x180&fps=10&audio=0",
    "operations": ["detect", "blur"],
    "targets": ["cam.mp4"],
}
RED, GREEN = "#ff0000", "#00ff00"
READ = r"configuration read again"
LONG_S = 60.0


class Reloadable(RunningDaemon):
    """A daemon with a configuration file."""

    def __init__(self, folder: Path, text: str, *settings: str) -> None:
        super().__init__(folder, *settings)
        self.config = folder / "livefuse.toml"
        self.config.write_text(text, "utf-8")

    def reload(self, text: str, until: str = READ) -> str:
        """Write `text`, tell the daemon, and wait for a new line of its log with `until`."""
        assert self.config is not None
        self.config.write_text(text, "utf-8")
        before = len(self.read_log())
        self.hang_up()
        wait_until(lambda: re.search(until, self.read_log()[before:]), LONG_S)
        return self.read_log()[before:]

    def hang_up(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def wait_renewed(self, job: str, pid: int) -> None:
        """Wait until `job` runs in another worker than `pid`."""
        wait_until(lambda: self.find_worker(job) != pid, LONG_S)
        self.wait_frames(job)
        assert self.get_job(job)["restarts"] == 0


class Watcher:
    """Reads a stream in a thread: what came, and whether it ended."""

    def __init__(self, url: str) -> None:
        self.data = b""
        self.has_ended = self._is_closing = False
        self._stream = urllib.request.urlopen(url, timeout=30)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing = True
        self._thread.join(10)
        self._stream.close()

    def check_goes_on(self) -> None:
        taken = len(self.data)
        wait_until(lambda: len(self.data) > taken, 10)
        assert not self.has_ended

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_closing and (data := self._stream.read1(1 << 16)):
                self.data += data
        self.has_ended = not self._is_closing


def write(colour: str, more: str = "") -> str:
    return f'[blur]\nstyle = "solid"\ncolour = "{colour}"\n{more}'


def check_limit(daemon: Reloadable, job: str, most: int) -> None:
    """Its worker, which goes on, has heard of the limit too."""
    url = f"{daemon.url}/v1/jobs/{job}/events?key={daemon.key}"
    with contextlib.ExitStack() as stack:
        for _ in range(most):
            stack.enter_context(Watcher(url))
        refused = daemon.ask("GET", f"/v1/jobs/{job}/events")
    assert refused.status == 503
    assert f"{most} pages are watching" in refused.value["detail"]


def count_pixels(daemon: Reloadable, job: str) -> tuple[int, int]:
    """Return how many pixels of a snapshot are rather red, and how many rather green."""
    data = daemon.ask("GET", f"/v1/jobs/{job}/snapshot.jpg").data
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    blue, green, red = cv2.split(picture)
    is_red = (red > 150) & (green < 90) & (blue < 90)
    is_green = (green > 150) & (red < 90) & (blue < 90)
    return int(is_red.sum()), int(is_green.sum())


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reloadable]:
    with Reloadable(tmp_path_factory.mktemp("d"), write(RED)) as running:
        yield running


def test_only_jobs_that_are_concerned_begin_again(daemon: Reloadable) -> None:
    passing = daemon.run_job(name="passing")
    blurred = daemon.run_job(BLURRED, "blurred")
    daemon.wait_frames(blurred, 3)
    red, green = count_pixels(daemon, blurred)
    assert red > 1000 > green
    pids = {name: daemon.find_worker(name) for name in (passing, blurred)}
    url = f"{daemon.url}/v1/jobs/passing/live.flv?key={daemon.key}"
    told = f"{daemon.url}/v1/jobs/blurred/events?key={daemon.key}"
    with Watcher(url) as watcher, Watcher(told) as events:
        log = daemon.reload(write(GREEN, '[limits]\nevent_streams = 2\n[log]\nlevel = "debug"'))
        assert "blur.colour" in log
        daemon.wait_renewed(blurred, pids[blurred])
        red, green = count_pixels(daemon, blurred)
        assert green > 1000 > red
        assert daemon.find_worker(passing) == pids[passing]
        watcher.check_goes_on()
        events.check_goes_on()
        assert b"event: end" not in events.data
        check_limit(daemon, passing, 2)
    wait_until(lambda: pids[blurred] not in daemon.list_workers(), 20)
    assert pids[passing] in daemon.list_workers()
    view = daemon.get_job(blurred)
    assert view["reason"] == "goes on in cam-2.mp4"
    assert (daemon.folder / "out" / "cam.mp4").stat().st_size > 0
    records = daemon.ask("GET", "/v1/audit?event=daemon.reloaded").value["records"]
    assert [one["facts"] for one in records] == [{"sections": ["blur", "limits", "log"]}]
    log = daemon.read_log()
    assert re.search(r"the job begins again .*job=blurred", log)
    assert not re.search(r"the job begins again .*job=passing", log)
    for name in (passing, blurred):
        assert daemon.ask("DELETE", f"/v1/jobs/{name}").status == 204


WRONG = {
    '[blur]\nstyle = "moasic"\n': "blur.style cannot be",
    "[blur\n": "is not TOML",
    '[access]\nnetworks = ["nowhere"]\n': "nowhere",
}


def test_a_wrong_file_changes_nothing_and_is_told(daemon: Reloadable) -> None:
    name = daemon.run_job()
    pid = daemon.find_worker(name)
    for text, cause in WRONG.items():
        log = daemon.reload(text, "the configuration stays as it is")
        (line,) = [one for one in log.splitlines() if "configuration" in one]
        assert cause in line
    assert daemon.get_job(name)["state"] in ON_AIR
    assert daemon.find_worker(name) == pid
    assert daemon.ask("DELETE", f"/v1/jobs/{name}").status == 204


def test_what_needs_a_new_daemon_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the service manager knows of it all."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    daemon = Reloadable(tmp_path, "[http]\nport = 0\n")
    daemon.settings = tuple(one for one in daemon.settings if not one.startswith("http.port"))
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "n"))
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
        with daemon:
            url = daemon.url
            assert manager.recv(100) == b"READY=1"
            began_us = time.monotonic_ns() // 1000
            log = daemon.reload(f'[http]\nport = {port}\n[safety]\nfolder = "/elsewhere"\n')
            told = manager.recv(100).decode()
            assert (found := re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", told))
            assert began_us <= int(found[1]) <= time.monotonic_ns() // 1000
            assert manager.recv(100) == b"READY=1"
            assert "not applied before livefuse serve is started again" in log
            assert "http.port" in log
            assert "safety" not in log  # it is set on the command line
            assert "none changed" in log
            assert (daemon.url, daemon.ask("GET", "/v1/jobs").status) == (url, 200)


def test_a_job_that_cannot_go_on_fails_and_the_others_do(tmp_path: Path) -> None:
    """Its file would lie elsewhere now; two hangups at once are as good as one.

    They share a worker. A new job is not put beside who is left of before. And it ends in order
    while it reloads.
    """
    folders = [tmp_path / "out", tmp_path / "other"]
    daemon = Reloadable(
        tmp_path, f'[record]\nfolder = "{folders[0]}"\n', "daemon.jobs_per_worker=4"
    )
    daemon.settings = tuple(one for one in daemon.settings if not one.startswith("record."))
    with daemon:
        bad = daemon.run_job(TINY | {"targets": [str(folders[0] / "a.mp4")]}, "bad")
        good = daemon.run_job(TINY | {"targets": ["b.mp4"]}, "good")
        other = daemon.run_job(name="other")
        (pid,) = {daemon.find_worker(name) for name in (bad, good, other)}
        assert daemon.config is not None
        daemon.config.write_text(f'[record]\nfolder = "{folders[1]}"\n', "utf-8")
        daemon.hang_up()
        daemon.hang_up()
        view = daemon.wait_state(bad, "failed", timeout_s=LONG_S)
        assert "may not lie there" in view["error"]
        daemon.wait_renewed(good, pid)
        assert (folders[1] / "b.mp4").exists()
        assert daemon.read_log().count("job begins again") == 2
        assert daemon.find_worker(daemon.run_job(name="new")) == daemon.find_worker(good)
        assert daemon.find_worker(other) == pid
        more = f'[record]\nfolder = "{folders[1]}"\n[encode]\nbitrate_kbps = 900\n'
        daemon.reload(more, "the job begins again")
        assert daemon.stop() == 0
