"""Both ends of a job lose their connections again and again; nothing of them is left (C28)."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import psutil
import pytest

from tests.clips import write_clip
from tests.wire.jobs import running
from tests.wire.servers import HOST, wait_until
from tests.wire.test_ingest_recovery import Hanger

pytestmark = [pytest.mark.wire, pytest.mark.timeout(120)]

SETTINGS = (
    "publish.start=none",
    "ingest.reconnect_min_ms=1",
    "ingest.reconnect_max_ms=2",
    "rtmp.backoff_min_ms=1",
    "rtmp.backoff_max_ms=2",
)


def count_resources() -> tuple[int, int, int, float]:
    """Return open files, threads, children and resident MB of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(list(Path("/proc/self/fd").iterdir()))
    children = len(psutil.Process().children(recursive=True))
    return files, threading.active_count(), children, pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_a_whole_job_comes_back_to_its_base(tmp_path: Path) -> None:
    """(C28) A camera that hangs up after twelve pictures, a server that hangs up at once."""
    clip = write_clip(tmp_path / "clip.ts", size=(64, 48), frames=12)
    camera, server = Hanger(clip.read_bytes()), Hanger(b"")
    source = f"tcp://{HOST}:{camera.port}"
    targets = (f"rtmp://{HOST}:{server.port}/live/key", str(tmp_path / "out.ts"))
    before = threading.active_count(), len(psutil.Process().children(recursive=True))
    try:
        with running(*targets, settings=SETTINGS, source=source) as job:
            # Each dial of the server is a process of its own: seconds, when the machine is busy.
            wait_until(lambda: camera.calls >= 40 and server.calls >= 1, 40, "warm-up")
            files, threads, children, memory_mb = count_resources()
            dialled = camera.calls, server.calls
            wait_until(
                lambda: camera.calls >= dialled[0] + 200 and server.calls >= dialled[1] + 2,
                60,
                "200 connections",
            )
            files_after, threads_after, children_after, memory_after_mb = count_resources()
            stats = job.statistics()
    finally:
        camera.close()
        server.close()
    # What is being connected just then comes and goes: a reader, a child, their sockets and pipes.
    assert abs(files_after - files) <= 10
    assert abs(threads_after - threads) <= 6
    assert abs(children_after - children) <= 1
    assert memory_after_mb - memory_mb < 15
    assert stats.counts["reconnect"] >= 200
    assert stats.restarts == {}
    assert not stats.counts.get("abandoned_readers", 0)
    wait_until(lambda: threading.active_count() <= before[0], 8, "end of all threads")
    left = len(psutil.Process().children(recursive=True))
    assert left <= before[1], "no child is left"
