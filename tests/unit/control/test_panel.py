"""Rate and delay both, the step that costs most by name (C07), outputs and the URL (C58)."""

import io

import pytest
from rich.console import Console

from livefuse.control.figures import merge_last
from livefuse.control.panel import (
    LineReporter,
    PanelReporter,
    QuietReporter,
    create_reporter,
    describe_output,
    draw_panel,
    format_end,
    format_line,
)
from livefuse.measures import Percentiles
from tests.unit.control.figures import OUTPUT, make_statistics

WATCH = ["http://127.0.0.1:8090/jobs/main/live.flv"]


def draw(stats, width=80):
    paper = io.StringIO()
    Console(file=paper, width=width).print(draw_panel(stats, WATCH))
    return paper.getvalue()


def test_the_panel_shows_all_a_person_needs():
    text = draw(make_statistics())
    for part in (
        "30.0 fps in, 29.7 fps out",
        "p50 8.0 p95 12.5 ms",
        "3 (late 3)",
        "rtmp://host/app/***",
        "reconnects 2",
        "note: the picture was cropped",
        WATCH[0],
    ):
        assert part in text
    (line,) = [line for line in text.splitlines() if "costs most" in line]
    assert "detect" in line
    assert all(len(line) <= 80 for line in text.splitlines())


def test_markup_in_foreign_words_is_not_obeyed():
    text = draw(make_statistics(source="[red]x[/red]", notes=["[bold]n[/bold]"]))
    assert "[red]x[/red]" in text
    assert "[bold]n[/bold]" in text


def test_a_job_without_frames_yet_is_drawn():
    none = Percentiles(0.0, 0.0, 0.0, 0)
    text = draw(make_statistics(latency=none, latency_recent=none, steps={}, outputs=[], media={}))
    assert "not known yet" in text


def test_the_line_is_one_line():
    line = format_line(make_statistics())
    assert "\n" not in line
    assert "29.7 out" in line
    assert "outputs 1 of 1 connected" in line
    assert "dropped 3 (late 3)" in format_end(make_statistics())


def test_lines_come_every_five_seconds_at_most(capsys):
    reporter = LineReporter()
    with reporter:
        for tenth in range(0, 200, 5):
            reporter.update(make_statistics(seconds=tenth / 10))
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_pipe_gets_lines_and_quiet_gets_nothing(capsys):
    assert isinstance(create_reporter(WATCH, quiet=False), LineReporter)
    quiet = create_reporter(WATCH, quiet=True)
    assert type(quiet) is QuietReporter
    with quiet:
        quiet.update(make_statistics(seconds=100))
    assert capsys.readouterr().out == ""


def test_a_panel_can_be_updated_and_closed(capsys):
    with PanelReporter(WATCH) as panel:
        panel.update(make_statistics())
    panel.update(make_statistics())
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "live, reconnects 2"),
        ({"connected": False, "state": "connecting"}, "connecting, not connected"),
        ({"connected": False, "state": "refused", "error": "wrong key"}, "wrong key"),
    ],
)
def test_an_output_is_told_in_words(change, words):
    assert words in describe_output({**OUTPUT, **change})


def test_how_long_an_output_has_been_away_is_told():
    lost = {**OUTPUT, "state": "stalled", "connected": False, "state_s": 12.4}
    assert "stalled for 12 s" in describe_output(lost)
    assert "for" not in describe_output({**OUTPUT, "state_s": 500.0})


def test_the_lead_of_the_sound_is_told():
    """(C51)"""
    assert "31 ms ahead of its picture" in draw(make_statistics(sound={"ahead_ms": 31.4}))
    assert "ahead" not in draw(make_statistics())


def test_a_wanted_stop_keeps_the_last_rates():
    last = make_statistics()
    closed = {**OUTPUT, "state": "closed", "connected": False, "packets": 12}
    stats = make_statistics(fps_out=0.0, frames_out=299, state="stopped", outputs=[closed])
    merged = merge_last(stats, last)
    assert (merged.fps_out, merged.frames_out, merged.state) == (29.7, 299, "stopped")
    assert merged.outputs[0]["connected"] is True
    assert merged.outputs[0]["packets"] == 12
    assert merge_last(stats, None) is stats


def test_two_targets_that_look_the_same_are_not_taken_for_one_another():
    """Their keys are secrets, so their addresses are shown alike."""
    last = make_statistics(
        outputs=[{**OUTPUT, "id": "1"}, {**OUTPUT, "id": "2", "state": "stalled"}]
    )
    now = make_statistics(outputs=[{**OUTPUT, "id": n, "state": "closed"} for n in ("1", "2")])
    assert [output["state"] for output in merge_last(now, last).outputs] == ["live", "stalled"]


def test_where_networks_run_is_shown():
    networks = {"provider": "cpu", "wanted": "auto", "fell_back": True, "garbage": 0}
    note = "networks run on the CPU: no usable NVIDIA device"
    text = draw(make_statistics(networks=networks, notes=[note]))
    assert "cpu (asked for auto)" in text
    assert note in text
    assert "asked for" not in draw(make_statistics())


def test_what_is_spared_is_told_and_why():
    """(C07) beside the rate and the delay, which are two things."""
    load = {
        "rung_index": 2,
        "changes": {"deadline": 1, "thermal": 2},
        "enhanced_share": 0.875,
        "pressures": ["thermal"],
    }
    text = draw(make_statistics(rung="enhance_off", load=load))
    flat = " ".join(text.replace("│", " ").split())
    assert "enhance_off, thermal, changes: deadline 1, thermal 2, 88 % of frames enhanced" in flat
    assert "load enhance_off" in format_line(make_statistics(rung="enhance_off", load=load))
    assert "load" not in draw(make_statistics())


def test_each_step_has_its_p50_and_p95_and_the_bottleneck_is_named():
    """(C07)"""
    lines = draw(make_statistics()).splitlines()
    (detect,) = [line for line in lines if "costs most" in line]
    assert "p50 39.0 p95 45.0 ms" in detect
    assert any("decode" in line and "p50 8.0 p95 12.5 ms" in line for line in lines)
    line = format_line(make_statistics())
    assert "30.0 fps in, 29.7 out | added latency p50 8.0 p95 12.5 ms" in line
    assert "detect costs most" in line


def test_health_is_told_with_its_reason_and_what_was_made_anew():
    stats = make_statistics(
        health="DEGRADED_INPUT", health_reason="the input is lost", restarts={"pipeline_hung": 2}
    )
    assert "DEGRADED_INPUT: the input is lost" in format_line(stats)
    panel = draw(stats)
    assert "DEGRADED_INPUT: the input is lost" in panel
    assert "pipeline_hung 2" in panel
