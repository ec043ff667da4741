"""A cap on memory: made anew once, then the job ends and the machine lives (C30)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from livefuse.clock import NS_PER_S
from livefuse.job.memory import MemoryCap, trim_heap

LIMIT = 1000


class Held:
    def __init__(self, limit=LIMIT):
        self.held = 0
        self.cap = MemoryCap(limit, lambda: self.held)

    def look(self, at_s, held):
        self.held = held
        return self.cap.look(round(at_s * NS_PER_S))


def test_it_looks_once_a_second_and_not_at_all_without_a_limit():
    held = Held()
    assert [held.look(at / 4, 500) for at in range(9)] == [
        "enough", None, None, None, "enough", None, None, None, "enough"
    ]  # fmt: skip
    assert Held(limit=0).look(0, 10**12) is None


def test_near_the_cap_the_governor_is_to_hear_of_it():
    held = Held()
    assert [held.look(at, amount) for at, amount in enumerate((900, 901, 1000, 800))] == [
        "enough", "constrained", "constrained", "enough"
    ]  # fmt: skip


def test_past_it_once_is_a_new_start_and_twice_within_a_minute_is_the_end():
    held = Held()
    assert held.look(0, 1001) == "over"
    recovering = [held.cap.is_recovering]
    assert held.look(2, 1100) == "constrained"
    assert held.look(4, 700) == "enough"
    assert held.look(30, 950) == "constrained"
    recovering.append(held.cap.is_recovering)
    assert recovering == [True, False]
    assert held.look(59, 1001) == "lost"


def test_after_a_quiet_minute_it_may_begin_again():
    held = Held()
    assert held.look(0, 1001) == "over"
    assert held.look(10, 500) == "enough"
    assert held.look(61, 1001) == "over"


def test_what_runs_away_is_not_waited_for():
    held = Held()
    assert held.look(0, 1001) == "over"
    assert held.look(1, 1600) == "lost"


def test_where_nothing_is_told_nothing_is_done():
    cap = MemoryCap(LIMIT, lambda: None)
    assert cap.look(0) == "enough"
    trim_heap()


LEAKING = """
import json, sys, threading
import numpy as np
from livefuse.clock import SystemClock
from livefuse.config import load_config
from livefuse.job.job import Job
from livefuse.machine import read_rss_bytes
from livefuse.pipeline.steps import Pipeline
from livefuse.job.spec import JobSpec
from tests.faces import create_services, share_sessions

class Leaking(Pipeline):
    def __init__(self):
        super().__init__(config, share_sessions(), SystemClock(), create_services())
        self.kept = []

    def finish(self, state):
        self.kept.append(np.ones(1_000_000, np.uint8))
        return super().finish(state)

limit_mb = (read_rss_bytes() >> 20) + 180
config = load_config(settings=("http.enabled=false", f"pipeline.memory_limit_mb={limit_mb}"))
spec = JobSpec("test:?size=160x120&fps=30", (), ("detect", "blur"), mode="live")
forgotten = []
job = Job("job", spec, config, SystemClock(), lambda mode: Leaking(), lambda: forgotten.append(1))
job.start()
most = 0
while not job.wait(0.1):
    most = max(most, read_rss_bytes() >> 20)
stats = job.statistics()
print(json.dumps({
    "limit": limit_mb, "most": most, "error": str(job.error), "restarts": stats.restarts,
    "forgotten": len(forgotten), "downgrades": stats.counts.get("downgrades", 0),
    "health": stats.health, "left": read_rss_bytes() >> 20, "out": stats.frames_out,
}))
"""


def test_a_leak_ends_its_job_with_a_sentence_and_nothing_else():
    """C30: the pipeline that leaks is thrown away once, the second time the job ends."""
    done = subprocess.run(
        [sys.executable, "-c", LEAKING],
        capture_output=True, text=True, timeout=50, check=False,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["restarts"] == {"pipeline_memory": 1}, found
    assert found["forgotten"] == 1
    assert found["downgrades"] >= 1, "the governor hears of it before"
    assert found["health"] == "ERROR"
    assert "memory" in found["error"]
    assert f"the {found['limit']} MB it may" in found["error"]
    assert found["most"] < 1.3 * found["limit"]
    assert found["out"] > 100
