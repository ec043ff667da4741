"""A live source whose time stamps stand still and then jump, through a whole job (C41)."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import threading
import time
from typing import TYPE_CHECKING

import av
import pytest

from tests.clips import write_clip
from tests.wire.jobs import running
from tests.wire.servers import HOST, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from livefuse.job.job import Job

pytestmark = [pytest.mark.wire, pytest.mark.timeout(90)]

FPS = 30
_SCRIPT = 18
PICTURES = 7 * FPS
STUCK = slice(2 * FPS, 3 * FPS)
JUMPS_MS = {4 * FPS: 5_000, 5 * FPS: -100_000}


def list_times_ms() -> list[int]:
    """Return the stamps: a second of one and the same, then 5 s ahead, then 100 s back."""
    moved = itertools.accumulate(JUMPS_MS.get(number, 0) for number in range(PICTURES))
    times = [200_000 + n * 1000 // FPS + by for n, by in enumerate(moved)]
    times[STUCK] = [times[STUCK.start]] * FPS
    return times


def cut_tags(data: bytes) -> tuple[bytes, list[bytearray]]:
    """Return what FLV begins with, up to its first picture, and the tags of its pictures.

    Not what it says of itself: with a duration it would be a file, which is played at its own pace.
    """
    at, head, tags = 13, bytearray(data[:13]), []
    while at < len(data):
        tag = bytearray(data[at : at + int.from_bytes(data[at + 1 : at + 4], "big") + 15])
        at += len(tag)
        is_picture = tag[0] == 9 and tag[12] == 1
        if is_picture:
            tags.append(tag)
        elif tag[0] != _SCRIPT:
            head += tag
    return bytes(head), tags


@contextlib.contextmanager
def serving(head: bytes, tags: list[bytearray]) -> Iterator[str]:
    """An HTTP server that sends each tag when its picture is taken, 30 a second."""
    over = threading.Event()

    class Camera(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "video/x-flv")
            self.end_headers()
            began_s = time.monotonic()
            with contextlib.suppress(OSError):
                self.wfile.write(head)
                for number, tag in enumerate(tags):
                    over.wait(max(began_s + number / FPS - time.monotonic(), 0))
                    self.wfile.write(tag)
                over.wait(30)

        def log_message(self, *_args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((HOST, 0), Camera) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}/live.flv"
        finally:
            over.set()
            server.shutdown()
            thread.join(5)


def count_taken(job: Job) -> int:
    """Return how many pictures came, those before the networks were there included."""
    stats = job.statistics()
    return stats.frames_in + stats.counts.get("skipped_while_starting", 0)


def test_whoever_watches_sees_one_line_in_real_time(tmp_path: Path) -> None:
    """(C41) Nothing is lost by it, and no picture stands still for what the stamps say."""
    clip = write_clip(tmp_path / "in.flv", frames=PICTURES, options={"bf": "0", "g": "30"})
    head, tags = cut_tags(clip.read_bytes())
    for tag, time_ms in zip(tags, list_times_ms(), strict=True):
        tag[4:7] = (time_ms & 0xFFFFFF).to_bytes(3, "big")
    out = tmp_path / "out.mkv"
    with serving(head, tags) as url, running(str(out), source=url) as job:
        wait_until(lambda: count_taken(job) >= PICTURES - 2, 30, "all pictures")
        time.sleep(0.3)
        stats = job.statistics()
    assert stats.counts["corrected_pts_order"] >= FPS - 10
    assert stats.counts["corrected_pts_jump"] >= 2
    assert stats.counts.get("reconnect", 0) == 0
    with av.open(str(out)) as container:
        stamps = [float(p.dts * p.time_base) for p in container.demux(video=0) if p.dts is not None]
    steps = [b - a for a, b in itertools.pairwise(stamps)]
    assert stats.frames_in >= PICTURES // 2 + 2 * FPS, "the fault is in what was shown"
    assert len(stamps) >= 0.9 * stats.frames_in, "a busy machine may drop some"
    assert min(steps) > 0
    assert max(steps) <= 0.5, "no stamp is believed that is 5 or 100 s away"
    assert stamps[-1] - stamps[0] == pytest.approx(stats.frames_in / FPS, abs=0.5)
