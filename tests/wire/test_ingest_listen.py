"""Be the server that OBS pushes to; ffmpeg stands in for OBS."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.wire.servers import HOST, Push, answers, find_free_port, require, wait_until
from tests.wire.test_ingest_pull import check_counter, check_flow, running

pytestmark = pytest.mark.wire
KEY = "myS3cretKey"


def make_url():
    return f"rtmp://{HOST}:{find_free_port()}/live/{KEY}"


def find_children(pid):
    """Return the ids and command lines of the processes that `pid` started."""
    path = Path(f"/proc/{pid}/task")
    found = {}
    for task in path.iterdir() if path.exists() else ():
        for child in (task / "children").read_text().split():
            found[int(child)] = Path(f"/proc/{child}/cmdline").read_text()
    return {pid: text for pid, text in found.items() if "livefuse.ingest.listen_child" in text}


def is_listening(url):
    """Tell whether the port of `url` is bound, without connecting: that would use up a push."""
    port = f":{int(url.split(':')[2].split('/')[0]):04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(port) and line.split()[3] == "0A" for line in lines)


def test_push_is_taken_with_its_sound_and_the_next_one_too(short_clip):
    require("ffmpeg")
    url = make_url()
    with running(f"listen:{url}") as sink:
        wait_until(lambda: is_listening(url), 10, "listener")
        with Push(short_clip, url) as push:
            check_flow(sink, 60)
            check_counter(sink)
            assert push.wait(10) == 0
        wait_until(lambda: "lost" in sink.states, 5, "end of the push")
        before = len(sink.pts)
        wait_until(lambda: is_listening(url), 10, "listener again")
        with Push(short_clip, url):
            wait_until(lambda: len(sink.pts) > before + 20, 10, "second push")
        assert all(b > a for a, b in itertools.pairwise(sink.pts.copy()))
        assert sink.media.audio.codec == "aac"
    assert not is_listening(url)
    assert not find_children(os.getpid())


def test_the_next_push_is_waited_for_by_a_process_that_runs_already(short_clip):
    """OBS dials once: whoever stops and starts again must find somebody listening."""
    require("ffmpeg")
    url = make_url()
    with running(f"listen:{url}") as sink:
        wait_until(lambda: is_listening(url), 10, "listener")
        (first,) = find_children(os.getpid())
        with Push(short_clip, url) as push:
            wait_until(lambda: len(find_children(os.getpid())) == 2, 10, "the next child")
            assert not is_listening(url)  # one push at a time
            (spare,) = set(find_children(os.getpid())) - {first}
            assert push.wait(10) == 0
        wait_until(lambda: is_listening(url), 10, "listener again")
        assert set(find_children(os.getpid())) == {spare}
        before = len(sink.pts)
        with Push(short_clip, url):
            wait_until(lambda: len(sink.pts) > before, 10, "second push")
            # One that dies while it waits is replaced when its turn comes.
            wait_until(lambda: len(find_children(os.getpid())) == 2, 10, "the next child")
            (waiting,) = set(find_children(os.getpid())) - {spare}
            os.kill(waiting, signal.SIGKILL)
        wait_until(lambda: is_listening(url), 10, "listener after all")
    assert not find_children(os.getpid())


@pytest.mark.parametrize("wrong", ["live/other", "studio/" + KEY])
def test_other_key_or_app_is_refused(short_clip, wrong):
    require("ffmpeg")
    url = make_url()
    with running(f"listen:{url}") as sink:
        wait_until(lambda: is_listening(url), 10, "listener")
        with Push(short_clip, url.replace(f"live/{KEY}", wrong)):
            wait_until(lambda: any(sink.errors), 10, "refusal")
        refusal = next(filter(None, sink.errors))
        assert "refused" in str(refusal)
        assert KEY not in str(refusal)
        assert not sink.pts


def test_key_is_not_in_the_process_list():
    """C76."""
    url = make_url()
    with running(f"listen:{url}"):
        wait_until(lambda: is_listening(url), 10, "listener")
        children = find_children(os.getpid())
        assert children
        assert not any(KEY in text for text in children.values())


def test_only_the_named_address_is_bound():
    url = make_url()
    with running(f"listen:{url}"):
        wait_until(lambda: is_listening(url), 10, "listener")
        port = int(url.split(":")[2].split("/")[0])
        bound = [
            line.split()[1]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
        ]
        assert bound == [f"0100007F:{port:04X}"]


def test_listener_ends_with_its_parent():
    url = make_url()
    code = (
        "import sys; from livefuse.ingest.listen import _ListenChild;"
        "from livefuse.config import IngestConfig;"
        "child = _ListenChild(sys.stdin.read(), IngestConfig()); print('up', flush=True);"
        "child.open_source()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(url)
    parent.stdin.close()
    assert parent.stdout.readline().strip() == "up"
    wait_until(lambda: is_listening(url), 10, "listener")
    parent.send_signal(signal.SIGKILL)
    parent.wait(5)
    parent.stdout.close()
    wait_until(lambda: not is_listening(url), 5, "end of the listener")


def test_stranger_that_only_connects_does_not_end_the_listening(short_clip):
    require("ffmpeg")
    url = make_url()
    with running(f"listen:{url}") as sink:
        wait_until(lambda: is_listening(url), 10, "listener")
        assert answers(int(url.split(":")[2].split("/")[0]))
        time.sleep(0.1)
        wait_until(lambda: is_listening(url), 15, "listener again")
        with Push(short_clip, url):
            wait_until(lambda: len(sink.pts) > 10, 15, "push")
