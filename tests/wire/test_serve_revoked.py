"""A key that is revoked: what it watches and sends ends; what it has made goes on, or stops."""

from __future__ import annotations

import contextlib
import http.client
import time
from urllib.parse import urlsplit

import pytest

from livefuse.clock import SystemClock
from livefuse.control.cli import main
from livefuse.control.keys import KeyStore
from tests.daemons import TINY, RunningDaemon
from tests.webrtc import LOOPBACK, Publisher, Watcher, wait_for
from tests.wire.test_webrtc_guests import check_is_heard, listening_inside, offer_to

pytestmark = [pytest.mark.wire, pytest.mark.timeout(150)]
LIMIT_S = 5.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("revoked")
    settings = (f'webrtc.addresses=["{LOOPBACK}"]', "access.restrict=on")
    with RunningDaemon(folder, *settings) as running:
        yield running


@pytest.fixture
def revoke(daemon, capsys):
    """`livefuse keys revoke`, beside the daemon; returns what it prints."""

    def run(*words: str) -> list[str]:
        capsys.readouterr()
        settings = ("--set", f"safety.folder={daemon.folder / 'safety'}")
        assert main(["keys", "revoke", *words, *settings]) == 0
        printed: str = capsys.readouterr().out
        return printed.splitlines()

    return run


@pytest.fixture(scope="module")
def keys(daemon):
    return KeyStore(daemon.folder / "safety", SystemClock())


def test_what_a_revoked_key_watches_ends(daemon, keys, revoke):
    """Events, the stream of players, and what goes past the daemon by UDP."""
    viewer, secret = keys.create("viewer", "wall")
    job = daemon.run_job({**TINY, "source": "test:?size=320x180&fps=15&audio=0"}, "watched")
    path = f"/v1/jobs/{job}/whep"
    watch, stay = (offer_to(daemon, path, key) for key in (secret, daemon.key))
    with Watcher(watch, has_sound=False) as watcher, Watcher(stay, has_sound=False) as other:
        wait_for(lambda: watcher.counters and other.counters, 20, "pictures")
        streams = [open_stream(daemon, job, name, secret) for name in ("events", "live.flv")]
        assert revoke(viewer.key_id) == [f"revoked {viewer.key_id}, viewer wall"]
        began = time.monotonic()
        for stream in streams:
            read_to_end(stream)
        wait_for(lambda: not watcher.is_connected(), LIMIT_S, "the viewer is sent away")
        assert time.monotonic() - began < LIMIT_S
        assert other.is_connected()
    assert daemon.ask("DELETE", f"/v1/jobs/{job}").status == 204


def test_what_a_revoked_key_sends_ends_and_its_jobs_when_that_is_said(daemon, keys, revoke):
    streamer, secret = keys.create("streamer", "anna")
    for job, spec in (("cam", {**TINY, "source": "whip:"}), ("bars", TINY)):
        wish = {"id": job, "spec": spec, "start": True}
        assert daemon.ask("POST", "/v1/jobs", wish, key=secret).status == 201
    daemon.wait_state("bars", "running")
    send = offer_to(daemon, "/v1/jobs/cam/whip", secret)
    with Publisher(send, size=(160, 120), has_sound=False) as publisher:
        daemon.wait_state("cam", "running")
        said = revoke(streamer.key_id)
        assert said[0] == f"revoked {streamer.key_id}, streamer anna"
        assert said[1] == "its jobs go on: cam, bars"
        assert said[2].endswith(f"livefuse keys revoke {streamer.key_id} --stop-jobs")
        wait_for(lambda: not publisher.is_connected(), LIMIT_S, "the publisher is sent away")
    assert daemon.get_job("bars")["state"] == "running"
    assert revoke(streamer.key_id, "--stop-jobs")[1].startswith("its jobs stop")
    for job in ("cam", "bars"):
        daemon.wait_state(job, "stopped", LIMIT_S)
    assert daemon.ask("POST", "/v1/jobs/bars/start").status == 200
    daemon.wait_state("bars", "running")
    time.sleep(2.5)
    assert daemon.get_job("bars")["state"] == "running"


def open_stream(daemon, job, name, key):
    parts = urlsplit(daemon.url)
    link = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    link.request("GET", f"/v1/jobs/{job}/{name}?key={key}")
    answer = link.getresponse()
    assert answer.status == 200
    return answer


def read_to_end(answer):
    with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
        while answer.read1(65536):
            pass
    answer.close()


def test_a_worker_knows_from_where_its_daemon_is_asked(daemon):
    """Who offers from this machine may name this machine, though the offer comes by the daemon."""
    job = daemon.run_job()
    with listening_inside() as inside:
        check_is_heard(daemon, f"/v1/jobs/{job}/whep", daemon.key, inside)
    assert daemon.ask("DELETE", f"/v1/jobs/{job}").status == 204


def test_a_scraper_s_key_reads_metrics_and_nothing_else(daemon, keys):
    given = {role: keys.create(role)[1] for role in ("scraper", "viewer", "streamer")}
    asked = {role: daemon.ask("GET", "/metrics", key=key) for role, key in given.items()}
    assert {role: answer.status for role, answer in asked.items()} == {
        "scraper": 200,
        "viewer": 403,
        "streamer": 403,
    }
    assert b"livefuse_daemon_jobs" in asked["scraper"].data
    assert "scraper" in asked["viewer"].value["hint"]
    for path in ("/v1/jobs", "/v1/catalogue", "/v1/audit"):
        assert daemon.ask("GET", path, key=given["scraper"]).status == 403
