"""No child outlives its parent, however that ends: no port stays taken, no key stays in use."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import psutil
import pytest

from tests.wire.servers import find_free_port, require, wait_until

pytestmark = [pytest.mark.wire, pytest.mark.timeout(60)]

SRT = """
from livefuse.ingest.srt import start_srt
child = start_srt("srt://127.0.0.1:{port}?mode=listener")
"""
RTMP = """
import socket
from livefuse.publish.rtmp_child import Task
from livefuse.publish.rtmp_link import ChildLink
from tests.streams import make_media
silent = socket.create_server(("127.0.0.1", {port}))
child = ChildLink(Task("rtmp://127.0.0.1:{port}/live/key", make_media(2).streams))
child.flush()
silent.accept()  # FFmpeg waits for an answer that never comes
"""


@pytest.mark.parametrize(("code", "program"), [(SRT, "srt-live-transmit"), (RTMP, "ffmpeg")])
def test_a_child_that_waits_ends_with_its_parent(code, program):
    require(program)
    code = code.format(port=find_free_port()) + "\nprint('up', flush=True)\ninput()\n"
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline().strip() == "up"
    children = psutil.Process(parent.pid).children(recursive=True)
    assert len(children) == 1
    assert children[0].is_running()
    parent.send_signal(signal.SIGKILL)
    parent.wait(5)
    parent.stdout.close()
    assert parent.stdin is not None
    parent.stdin.close()
    wait_until(lambda: not is_alive(children[0]), 5, "end of the child")


def test_an_srt_receiver_ends_with_the_thread_that_was_abandoned():
    """Its ingest is made anew: the old receiver must not keep the port."""
    require("srt-live-transmit")
    from livefuse.ingest.srt import start_srt

    started = []
    url = f"srt://127.0.0.1:{find_free_port()}?mode=listener"

    def start():
        started.append(start_srt(url))
        child = psutil.Process(started[0]._process.pid)
        wait_until(lambda: child.name().startswith("srt"), 10, "receiver")

    thread = threading.Thread(target=start)
    thread.start()
    thread.join(15)
    process = started[0]._process
    try:
        assert process.wait(5) == -signal.SIGKILL
    finally:
        started[0].close()


def is_alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
