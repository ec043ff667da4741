"""Players of the live stream: late, slow, many, gone; nobody else notices (C02, C03, C27)."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psutil
import pytest

from tests.measure import Recording, record
from tests.streams import read_back
from tests.wire.servers import HOST, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.wire, pytest.mark.timeout(90)]

RUN = [sys.executable, "-m", "livefuse", "run", "--operations", "none"]
SETTINGS = ("http.port=0", "http.require_key=false", "encode.preset=ultrafast")


@contextlib.contextmanager
def serving(
    source: str, *settings: str, to: Path | None = None
) -> Iterator[tuple[psutil.Process, str]]:
    """Run a job; yields its process and the URL of live.flv as it is printed."""
    options = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
    options += ["--to", str(to)] if to is not None else []
    with subprocess.Popen(
        [*RUN, "--from", source, *options], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while not (found := re.search(r"http://\S+live\.flv\S*", process.stdout.readline())):
                assert process.poll() is None
            drain = threading.Thread(target=process.stdout.read, daemon=True)
            drain.start()
            yield psutil.Process(process.pid), found[0]
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="module")
def stream():
    """One job for all that only look: its process and live.flv's URL; a player has been there."""
    with serving("test:?size=320x180&fps=30") as (process, url):
        record(url, frames=30)  # what every viewer needs is loaded with the first one
        yield process, url


def test_a_viewer_after_a_while_without_any_gets_what_is_now(stream):
    """(C02) First frame younger than 300 ms, memory flat while nobody watched."""
    process, url = stream
    before = process.memory_info().rss
    time.sleep(8)
    assert process.memory_info().rss - before < 2_000_000
    recording = record(url, frames=90)
    lags = [picture.arrival_s - picture.pts_s for picture in recording.video]
    # What later pictures need at best is the way itself; the first may have waited longer.
    assert lags[0] - min(lags) < 0.3
    counters = get_counters(recording)
    assert all(b > a for a, b in itertools.pairwise(counters))


def get_counters(recording: Recording) -> list[int]:
    return [picture.counter for picture in recording.video if picture.counter is not None]


def cut_to_tags(data: bytes) -> bytes:
    """Return FLV without the tag at its end that is not whole."""
    end = 9 + 4
    while end + 11 <= len(data):
        following = end + 11 + int.from_bytes(data[end + 1 : end + 4], "big") + 4
        if following > len(data):
            break
        end = following
    return data[:end]


class SlowPlayer:
    """Reads at `bytes_per_s`, with little in the kernel, and keeps what it got."""

    def __init__(self, url: str, bytes_per_s: float) -> None:
        self.data = b""
        parts = urlsplit(url)
        self._sock = socket.socket()
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        self._sock.connect((HOST, parts.port))
        where = f"{parts.path}?{parts.query}"
        self._sock.sendall(f"GET {where} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        self._bytes_per_s = bytes_per_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        piece = 8192
        while not self._over.wait(piece / self._bytes_per_s):
            data = self._sock.recv(piece)
            if not data:
                return
            self.data += data

    def has_read(self, size: int) -> bool:
        return len(self.data) > size

    def finish(self) -> bytes:
        """Return the stream without the head of the answer."""
        self._over.set()
        self._thread.join(5)
        self._sock.close()
        return self.data.partition(b"\r\n\r\n")[2]


def test_a_viewer_at_half_rate_skips_to_now_and_another_misses_nothing(tmp_path):
    """(C03) It reads a stream that decodes, with holes; the other one has every frame."""
    rich = ("encode.bitrate_kbps=6000", "http.viewer_queue_bytes=200000")
    path = tmp_path / "all.flv"
    with serving("demo:?size=640x360&fps=30&audio=0", *rich, to=path) as (_, url):
        before = time.monotonic()
        slow = SlowPlayer(url, 300_000)
        quick = record(url, frames=240, timeout_s=30)
        took_s = time.monotonic() - before
        data = slow.finish()
    seen = get_counters(quick)
    made = [counter for counter in get_counters(record(path)) if seen[0] <= counter <= seen[-1]]
    assert seen == made, "the quick one misses nothing"
    found = read_back(cut_to_tags(data), "flv")
    assert len(found.pictures) > 60
    steps = [b - a for a, b in itertools.pairwise(found.pictures)]
    assert max(steps) > 0.3, "it skipped"
    behind_s = quick.video[-1].pts_s - found.pictures[-1]
    assert behind_s < 0.5 * took_s, "and did not fall behind for ever"


def test_three_viewers_cost_no_memory_with_time(stream):
    """(C27) In short; `scripts/bench viewers_memory` is the long form."""
    process, url = stream
    over = threading.Event()

    def watch():
        while not over.is_set():
            with contextlib.suppress(OSError):
                record(url, frames=60)

    viewers = [threading.Thread(target=watch, daemon=True) for _ in range(3)]
    for viewer in viewers:
        viewer.start()
    time.sleep(3)  # caches and pools are full by then
    sizes = []
    for _ in range(8):
        sizes.append(process.memory_info().rss)
        time.sleep(0.75)
    over.set()
    for viewer in viewers:
        viewer.join(20)
    assert max(sizes[4:]) <= 1.05 * max(sizes[:4])


def test_a_player_that_goes_away_is_forgotten(stream):
    process, url = stream
    fds = process.num_fds()
    for _ in range(5):
        player = SlowPlayer(url, 100_000)
        wait_until(partial(player.has_read, 1000), 5, "data")
        assert player.finish().startswith(b"FLV")
    wait_until(lambda: process.num_fds() <= fds, 10, "sockets closed")
