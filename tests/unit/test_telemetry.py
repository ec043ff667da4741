"""Telemetry: percentiles within 2 %, memory fixed, logs without secrets."""

import contextlib
import json
import logging
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, ManualClock
from livefuse.config import LogConfig
from livefuse.job.crew import start_stage
from livefuse.measures import Distribution, Rate
from livefuse.telemetry import Telemetry, get_logger, log_for, set_up_logging


@given(st.lists(st.floats(0.05, 1000.0), min_size=1, max_size=300))
def test_percentiles_are_within_two_percent(values):
    distribution = Distribution()
    for value in values:
        distribution.add(value)
    exact = sorted(values)[max(-(-len(values) // 2) - 1, 0)]
    assert distribution.overall().p50_ms == pytest.approx(exact, rel=0.02, abs=0.001)
    assert distribution.overall().count == len(values)


def test_an_empty_distribution_answers_zero():
    assert Distribution().overall().p95_ms == 0.0
    assert Distribution().recent().count == 0


def test_recent_forgets_overall_does_not():
    distribution = Distribution()
    for _ in range(1000):
        distribution.add(100.0)
    for _ in range(600):
        distribution.add(1.0)
    assert distribution.recent().p50_ms == 1.0
    assert distribution.overall().p50_ms == pytest.approx(100.0, rel=0.02)


def test_rate_counts_the_last_two_seconds():
    clock = ManualClock()
    rate = Rate(clock)
    for _ in range(90):
        rate.add()
        clock.advance(100 * NS_PER_MS // 3)
    assert rate.per_s() == pytest.approx(30, rel=0.05)
    clock.advance(3000 * NS_PER_MS)
    assert rate.per_s() == 0.0


def test_drops_are_counted_by_reason_apart_from_other_events():
    telemetry = Telemetry(ManualClock())
    telemetry.count("dropped_pipeline_busy", 2)
    telemetry.count("corrected_pts")
    assert telemetry.dropped() == {"pipeline_busy": 2}
    assert telemetry.counts() == {"corrected_pts": 1}


def test_the_bottleneck_is_the_step_that_takes_most():
    """C07"""
    telemetry = Telemetry(ManualClock())
    telemetry.observe_step("detect", 9.0)
    telemetry.observe_step("encode", 5.0)
    assert telemetry.bottleneck() == "detect"


def test_logs_hold_no_secret(capsys):
    """C76"""
    url = "rtsp://user:hunter2@cam/1"
    set_up_logging(LogConfig(form="json"), (url,))
    get_logger("test").info("input", url=url, cause="password hunter2 was refused")
    line = capsys.readouterr().err
    assert "hunter2" not in line
    assert json.loads(line)["url"] == "rtsp://***@cam/1"


def fail(url):
    raise OSError(5, "Input/output error", url)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_foreign_exception_in_a_log_holds_no_secret(capsys, form):
    """C76: FFmpeg's exceptions end in the URL."""
    url = "rtsp://user:hunter2@cam/1"
    set_up_logging(LogConfig(form=form, level="debug"), (url,))
    try:
        fail(url)
    except OSError:
        get_logger("test").debug("stage failed", exc_info=True)
    said = capsys.readouterr().err
    assert "hunter2" not in said
    assert "Input/output error" in said
    assert "test_telemetry" in said, "the traceback is there"


def test_logs_are_plain_text_by_default_and_hold_nothing_empty(capsys):
    set_up_logging(LogConfig())
    get_logger("test").info("input", state="live", cause="")
    line = capsys.readouterr().err
    assert line.endswith("[info] input module=test state=live\n")


def test_a_log_that_nobody_can_take_ends_no_thread(monkeypatch):
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    stream = os.fdopen(write_fd, "w", buffering=1, encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", stream)
    set_up_logging(LogConfig())
    get_logger("test").warning("lost")
    with pytest.raises(BrokenPipeError):
        stream.write("what is not shielded fails\n")
    with contextlib.suppress(BrokenPipeError):  # what it could not write is still in it
        stream.close()


def test_how_many_of_the_last_frames_failed_is_said_once_there_were_enough():
    """(C21)"""
    telemetry = Telemetry(ManualClock())
    for _ in range(29):
        telemetry.note_outcome(failed=True)
    assert telemetry.get_failed_share() == 0.0
    telemetry.note_outcome(failed=True)
    assert telemetry.get_failed_share() == 1.0
    for _ in range(15):
        telemetry.note_outcome(failed=False)
    assert telemetry.get_failed_share() == 0.5


def test_what_is_made_for_a_job_names_it_in_its_logs(capsys):
    """Loggers that are made meanwhile, also where a stage's thread goes on with it."""
    set_up_logging(LogConfig(form="json"))
    with log_for("cam"):
        kept = get_logger("publish")
        thread = start_stage("t", lambda: get_logger("stages").info("two"), lambda _e: None, ())
    thread.join()
    kept.info("one")
    kept.info("three", job="other")
    get_logger("machine").info("four")
    lines = map(json.loads, capsys.readouterr().err.splitlines())
    jobs = {line["event"]: line.get("job") for line in lines}
    assert jobs == {"one": "cam", "two": "cam", "three": "other", "four": None}


def test_what_libraries_say_is_in_the_same_form_and_holds_no_secret(capsys):
    """C76"""
    set_up_logging(LogConfig(form="json"), ("rtmp://h/live/hunter2",))
    set_up_logging(LogConfig(form="json"), ("rtmp://h/live/hunter2",))
    logging.getLogger("some.library").error("no route to %s", "rtmp://h/live/hunter2")
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["module"], told["level"]) == ("some.library", "error")
    assert "hunter2" not in line
