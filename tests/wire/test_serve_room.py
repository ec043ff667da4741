"""A job too many is refused with what is free, or waits for its turn, over restarts too."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.daemons import TINY, RunningDaemon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]
FULL = ("daemon.admission=true", "daemon.cores_share=0.1")
"""Less than a job needs: the first one fits always, no second one."""


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path_factory.mktemp("d"), *FULL) as running:
        yield running


def test_a_job_too_many_is_refused_with_what_is_free(daemon: RunningDaemon) -> None:
    daemon.run_job(name="first")
    refused = daemon.ask("POST", "/v1/jobs", {"id": "more", "spec": TINY, "start": True})
    assert refused.status == 503
    assert "Retry-After" in refused.headers
    assert "it needs about 0.3 cores and 0.0 of 0.2 are free" in refused.value["detail"]
    assert "queue=true" in refused.value["hint"]
    assert daemon.ask("GET", "/v1/jobs/more").status == 404
    made = daemon.ask("POST", "/v1/jobs", {"id": "more", "spec": TINY})
    assert made.value["state"] == "submitted"
    assert daemon.ask("POST", "/v1/jobs/more/start").status == 503
    assert daemon.get_job("more")["state"] == "submitted"


def test_who_waits_comes_in_turn_when_there_is_room(daemon: RunningDaemon) -> None:
    daemon.run_job(name="first")
    wish = {"spec": TINY, "start": True, "queue": True}
    second = daemon.ask("POST", "/v1/jobs", {"id": "second", **wish})
    assert (second.status, second.value["state"]) == (201, "queued")
    assert "cores" in second.value["reason"]
    daemon.ask("POST", "/v1/jobs", {"id": "third", "spec": TINY})
    third = daemon.ask("POST", "/v1/jobs/third/start?queue=true")
    assert (third.status, third.value["state"]) == (200, "queued")
    # What waits can be taken back, and asked for again: behind the others then.
    assert daemon.ask("POST", "/v1/jobs/second/stop").value["state"] == "stopped"
    assert daemon.ask("POST", "/v1/jobs/second/start?queue=true").value["state"] == "queued"
    assert daemon.ask("POST", "/v1/jobs/first/stop").value["state"] == "stopped"
    daemon.wait_on_air("third")
    assert daemon.get_job("second")["state"] == "queued"
    assert daemon.ask("DELETE", "/v1/jobs/third").status == 204
    daemon.wait_on_air("second")


def test_who_waits_waits_over_a_restart(daemon: RunningDaemon) -> None:
    daemon.run_job(name="first")
    wish = {"id": "second", "spec": TINY, "start": True, "queue": True}
    assert daemon.ask("POST", "/v1/jobs", wish).value["state"] == "queued"
    daemon.kill()
    daemon.start()
    daemon.wait_on_air("first")
    assert daemon.get_job("second")["state"] == "queued"
    assert daemon.ask("DELETE", "/v1/jobs/first").status == 204
    daemon.wait_on_air("second")


def test_a_streamer_has_so_many_jobs_and_no_more(tmp_path: Path) -> None:
    with RunningDaemon(tmp_path, "limits.jobs_per_key=2") as daemon:
        made = livefuse_keys(daemon, "create", "--role", "streamer", "--name", "bob")
        for name in ("a", "b"):
            assert daemon.ask("POST", "/v1/jobs", {"id": name}, key=made).status == 201
        refused = daemon.ask("POST", "/v1/jobs", {"id": "c"}, key=made)
        assert (refused.status, refused.value["detail"]) == (503, "2 jobs are yours already")
        assert daemon.ask("POST", "/v1/jobs", {"id": "c"}).status == 201
        assert daemon.ask("POST", "/v1/jobs", {"id": "d\n"}).status == 422


def livefuse_keys(daemon: RunningDaemon, *arguments: str) -> str:
    """Return what `livefuse keys` prints, with the daemon's folder."""
    settings = ("--set", f"safety.folder={daemon.folder / 'safety'}")
    command = [sys.executable, "-m", "livefuse", "keys", *arguments, *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()
