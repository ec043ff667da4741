"""Python's garbage collector never stops a frame for long (C28)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

# Thread time, not wall time: what other processes take is not the collector's. What is collected
# before the heap is frozen stops no frame.
PROGRAM = """
import gc, json, sys, time
from livefuse.control.cli import main

pauses, begun, freeze, is_frozen = [], [0.0], gc.freeze, []

def note(phase, info):
    if phase == "start":
        begun[0] = time.thread_time()
    elif is_frozen:
        pauses.append((time.thread_time() - begun[0]) * 1000)

gc.freeze = lambda: is_frozen.append(freeze())
gc.callbacks.append(note)
code = main(sys.argv[1:])
print(json.dumps({"code": code, "pauses_ms": pauses, "frozen": gc.get_freeze_count()}))
"""


def test_no_collection_takes_ten_milliseconds(tmp_path):
    command = [sys.executable, "-c", PROGRAM, "run", "--from", "demo:?size=320x180&fps=30"]
    command += ["--to", str(tmp_path / "out.flv")]
    command += ["--set", "http.enabled=false", "--quiet", "--for", "6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["code"] == 0
    assert found["frozen"] > 20_000
    assert found["pauses_ms"]
    assert max(found["pauses_ms"]) < 10
