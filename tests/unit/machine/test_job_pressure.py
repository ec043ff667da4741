"""What presses on the machine reaches a running job's rung, status and end."""

import threading
import time

import pytest

from livefuse.clock import NS_PER_MS, SystemClock
from livefuse.config import load_config
from livefuse.job.spec import JobSpec
from livefuse.machine import MachineReader, Reading, Usage, watch
from livefuse.workers.local import Worker

SOURCE = "demo:?size=64x64&audio=0"


def run_until(config, is_done, timeout_s=20):
    """Run a live job until `is_done(statistics)`; return the last statistics, all closed."""
    worker = Worker(config, SystemClock())
    job = worker.add_job("job", JobSpec(SOURCE, (), ("detect", "blur"), mode="live"))
    job.start()
    try:
        assert job.wait_started(20)
        deadline = time.monotonic() + timeout_s
        while not is_done(job.statistics()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return job.statistics()
    finally:
        assert job.stop(10)


@pytest.fixture
def full_machine(monkeypatch):
    monkeypatch.setattr(watch, "_EVERY_NS", 20 * NS_PER_MS)
    monkeypatch.setattr(MachineReader, "read", lambda self: Reading(memory=Usage(99, 100)))


@pytest.mark.usefixtures("full_machine")
def test_a_machine_without_memory_costs_a_rung_and_says_so():
    config = load_config(settings=("http.enabled=false",))
    # A machine that is busy with other things may have cost one before.
    stats = run_until(config, lambda stats: "memory_constrained" in stats.load.get("changes", ()))
    assert stats.load["pressures"] == ["memory_constrained"]
    assert stats.load["rung_index"] >= 1
    assert not [t for t in threading.enumerate() if t.name == "livefuse-machine"]


@pytest.mark.usefixtures("full_machine")
def test_it_is_not_watched_when_that_is_switched_off():
    config = load_config(settings=("http.enabled=false", "governor.watch_machine=false"))
    stats = run_until(config, lambda stats: stats.frames_out > 20)
    assert stats.load["pressures"] == []
    assert "memory_constrained" not in stats.load["changes"]
