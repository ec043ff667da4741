"""The outputs of a running job against real servers: down at the start, stalled, gone, taken.

Each is tried again for ever, and none of the others notices (C36).
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livefuse.errors import PublishConnectError
from tests.streams import read_back
from tests.wire.jobs import get_output, running, wait_state
from tests.wire.servers import (
    HOST,
    BlackHole,
    NginxRtmp,
    find_free_port,
    wait_until,
)

if TYPE_CHECKING:
    from livefuse.job.job import Job

pytestmark = [pytest.mark.wire, pytest.mark.timeout(90)]

ROOT = Path(__file__).parents[2]

# Enough bits to fill what the kernels keep of a connection within a second or two.
FACE = "demo:?size=320x180&fps=30"
RICH = ("encode.bitrate_kbps=6000", "encode.preset=ultrafast")


def check_witness(path: Path, *, seconds: float) -> None:
    """Assert that the file lacks nothing: whatever the others did, this output did not notice."""
    found = read_back(path, decode=False)
    video = [read.dts for read in found.of("video")]
    assert (video[-1] - video[0]) / 1000 >= seconds
    steps = [b - a for a, b in itertools.pairwise(video)]
    assert max(steps) <= 200, "in ms: a frame in six, when the machine is busy"
    audio = [read.pts_s for read in found.of("audio")]
    assert max(b - a for a, b in itertools.pairwise(audio)) <= 0.1


def test_a_server_that_is_down_at_the_start_stops_nobody_and_is_found_later(tmp_path):
    """One of three: the others run; it is told why, and dialled until it is there."""
    path = tmp_path / "witness.mkv"
    with NginxRtmp() as up, contextlib.ExitStack() as stack:
        down = NginxRtmp()
        with running(up.url("a"), down.url("b"), str(path)) as job:
            stack.callback(down.stop)
            wait_state(job, 0, "live")
            wait_state(job, 2, "live")
            refused = wait_state(job, 1, "refused")
            assert "the connection was refused" in str(refused["error"])
            assert refused["connected"] is False
            assert "/b" not in str(refused)
            wait_until(lambda: float(str(get_output(job, 1)["state_s"])) >= 1, 5, "a second")
            down.start()
            back = wait_state(job, 1, "live")
            assert (back["error"], back["reconnects"]) == ("", 0)
            assert down.is_publishing("b")
            assert get_output(job, 0)["reconnects"] == 0
            time.sleep(0.5)
    check_witness(path, seconds=1.5)


def test_a_wrong_host_is_told_at_once_when_it_is_all_there_is():
    url = f"rtmp://{HOST}:{find_free_port()}/live/key"
    with pytest.raises(PublishConnectError, match="connection was refused"), running(url):
        pass
    with running(url, settings=("publish.start=none",)) as job:
        wait_state(job, 0, "refused")
        assert job.state == "running"


def test_all_may_be_asked_for(tmp_path):
    targets = (str(tmp_path / "a.mkv"), f"rtmp://{HOST}:{find_free_port()}/live/key")
    with (
        pytest.raises(PublishConnectError),
        running(*targets, settings=("publish.start=all",)),
    ):
        pass


def test_a_port_that_swallows_everything_holds_nobody_up(tmp_path):
    path = tmp_path / "witness.mkv"
    with BlackHole() as hole:
        before = time.monotonic()
        with running(f"rtmp://{HOST}:{hole.port}/live/key", str(path)) as job:
            assert time.monotonic() - before < 10
            assert "does not answer" in str(wait_state(job, 0, "stalled")["error"])
            wait_until(lambda: float(str(get_output(job, 0)["state_s"])) >= 2, 5, "two seconds")
            assert get_output(job, 1)["state"] == "live"
            before = time.monotonic()
        assert time.monotonic() - before < 8, "stopping does not wait for it"
    check_witness(path, seconds=1.5)


def check_untouched(job: Job, *which: int) -> None:
    for output in (get_output(job, n) for n in which):
        assert (output["state"], output["reconnects"]) == ("live", 0)
        assert int(str(output["dropped"])) <= 100, "only what came before it was there"


def test_a_server_that_stops_taking_data_is_dialled_again(tmp_path):
    """SIGSTOP; the other server and the file go on."""
    path = tmp_path / "witness.mkv"
    with (
        NginxRtmp() as victim,
        NginxRtmp() as other,
        running(victim.url("k"), other.url("o"), str(path), settings=RICH, source=FACE) as job,
    ):
        wait_state(job, 0, "live")
        victim.pause()
        assert "takes no more data" in str(wait_state(job, 0, "stalled")["error"])
        wait_until(lambda: "does not answer" in str(get_output(job, 0)["error"]), 8)
        victim.resume()
        back = wait_state(job, 0, "live")
        assert (back["reconnects"], back["error"]) == (1, "")
        check_untouched(job, 1, 2)
    check_witness(path, seconds=3)


def test_a_server_that_restarts_and_refuses_the_name_for_a_while(tmp_path):
    """(C36) SIGTERM, then the old session lingers: dialled until the name is free."""
    path = tmp_path / "witness.mkv"
    with NginxRtmp(is_recording=True) as victim, NginxRtmp() as other:
        with running(victim.url("k"), other.url("o"), str(path)) as job:
            wait_state(job, 0, "live")
            live_s = time.monotonic()
            victim.stop()
            wait_until(lambda: "was refused" in str(get_output(job, 0)["error"]), 8)
            victim.closed_names.touch()
            victim.recording_path("k").unlink()
            victim.start()
            wait_until(lambda: "instead of taking" in str(get_output(job, 0)["error"]), 8)
            dropped = int(str(get_output(job, 0)["dropped"]))
            wait_until(lambda: int(str(get_output(job, 0)["dropped"])) > dropped + 60, 8)
            assert get_output(job, 0)["state"] == "refused", "without a break"
            victim.closed_names.unlink()
            back = wait_state(job, 0, "live")
            away_ms = 1000 * (time.monotonic() - live_s)
            assert (back["reconnects"], back["error"]) == (1, "")
            time.sleep(1)
            check_untouched(job, 1, 2)
        wait_until(lambda: not victim.is_publishing("k"), 5, "end of publishing")
        again = read_back(victim.recording_path("k"))
        assert again.codecs == ["h264", "aac"]
        assert again.of("video")[0].is_keyframe
        assert again.corrupt == 0
        assert again.of("video")[0].dts > away_ms - 1000, "the line goes on, nothing is sent late"
    check_witness(path, seconds=int(away_ms / 1000))


CUT_CABLE = """
import subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
from livefuse.clock import SystemClock
from livefuse.config import RtmpConfig
from livefuse.publish.rtmp import RtmpOutput
from tests.streams import LiveFeed
from tests.wire.servers import NginxRtmp, wait_until

quick = RtmpConfig(stall_ms=1000, connect_timeout_ms=3000, backoff_min_ms=100, backoff_max_ms=400)
outputs = []

def send(packet):
    for output in outputs:
        output.send(packet)

def has_state(state):
    return lambda: outputs[0].status().state == state

with NginxRtmp() as server, LiveFeed(send) as feed:
    outputs.append(RtmpOutput(server.url(), quick, SystemClock(), feed.encoder.force_keyframe))
    outputs[0].open(feed.streams)
    wait_until(has_state("live"), 10, "live")
    subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
    wait_until(has_state("stalled"), 10, "stalled")
    print(outputs[0].status().error)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    wait_until(has_state("live"), 10, "live again")
    print(outputs[0].status().reconnects)
    outputs[0].close(2)
"""


def test_a_cable_that_is_cut_is_noticed_though_the_stream_is_small():
    """In a network of its own: a few kB/s would fill the kernel's buffer only in half a minute."""
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", CUT_CABLE],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    error, reconnects = done.stdout.splitlines()
    assert "acknowledges nothing any more" in error
    assert reconnects == "1"


def test_outputs_are_added_and_removed_while_the_job_runs(tmp_path):
    path, later = tmp_path / "witness.mkv", tmp_path / "later.mp4"
    with NginxRtmp(is_recording=True) as server:
        with running(str(path)) as job:
            wait_state(job, 0, "live")
            time.sleep(1)
            added = job.add_output(server.url("added"))
            assert added.state == "connecting"
            job.add_output(str(later))
            assert wait_state(job, 1, "live")["id"] == added.id
            wait_state(job, 2, "live")
            assert server.is_publishing("added")
            time.sleep(1)
            server.pause()  # removing what hangs holds nobody up
            before = time.monotonic()
            job.remove_output(added.id)
            assert time.monotonic() - before < 0.5
            assert [output["kind"] for output in job.statistics().outputs] == ["file", "file"]
            server.resume()
            wait_until(lambda: not server.is_publishing("added"), 10, "end of publishing")
            check_untouched(job, 0)
        found = read_back(server.recording_path("added"))
        assert found.packets[0].is_keyframe
        assert found.corrupt == 0
        assert read_back(later).pictures[0] < 0.1
    check_witness(path, seconds=1.5)
