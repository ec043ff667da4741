"""What a worker process says of itself is heard, however much it is."""

from __future__ import annotations

import os
import threading

from livefuse.config import Config
from livefuse.workers.process import Beat, WorkerOrder, WorkerProcess

SPEAKER = """
import json, sys
sys.stdin.readline()
jobs = [{"id": f"job-{n}", "phase": "failed", "error": "x" * 2000} for n in range(64)]
print("no beat")
print(json.dumps({"jobs": jobs}))
"""


def test_a_beat_of_many_jobs_is_heard_and_what_is_none_is_told(tmp_path, monkeypatch):
    (tmp_path / "speaker.py").write_text(SPEAKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    beats: list[Beat] = []
    lines: list[str] = []
    has_ended = threading.Event()
    order = WorkerOrder(
        number=1, epoch=1, parent_pid=os.getpid(), socket="", secret="s", lock="", config=Config()
    )
    process = WorkerProcess(
        "speaker",
        order,
        on_beat=beats.append,
        on_line=lines.append,
        on_end=lambda _: has_ended.set(),
    )
    assert has_ended.wait(30)
    assert process.has_ended
    (beat,) = beats
    assert len(beat.jobs) == 64
    assert beat.jobs[-1].id == "job-63"
    (line,) = lines
    assert line.startswith("a beat of 8 bytes cannot be read")
