"""What a scraper reads of a job."""

from typing import get_args

import msgspec
import pytest

from livefuse.clock import ManualClock
from livefuse.config import ModelsConfig, RefuseConfig
from livefuse.errors import RefusedError
from livefuse.job.health import Health
from livefuse.metrics import HEALTHS, OUTPUT_STATES, create_metrics, render_metrics
from livefuse.publish.base import OutputState
from livefuse.runtime.session import SessionCache
from livefuse.safety.audit import AuditLog
from livefuse.safety.refusals import Refusals
from livefuse.telemetry import Telemetry
from tests.unit.control.figures import make_statistics


def scrape(**changes):
    jobs = [(make_statistics(**changes), Telemetry(ManualClock()))]
    text, kind = render_metrics(create_metrics(lambda: jobs))
    assert "text/plain" in kind
    return text.decode()


def test_a_fallback_to_the_processor_is_a_metric(monkeypatch):
    """(C19) `auto` runs on the CPU and says so."""
    from livefuse.runtime import providers

    monkeypatch.setattr(providers, "has_nvidia_device", lambda: False)
    sessions = SessionCache(ModelsConfig())
    sessions.get("blazeface_full_192")
    networks = msgspec.to_builtins(sessions.statistics())
    text = scrape(networks=networks)
    assert 'livefuse_networks_fell_back{job_id="main",provider="cpu",wanted="auto"} 1.0' in text
    assert 'livefuse_refused_network_results_total{job_id="main"} 0.0' in text


def test_a_job_without_networks_says_nothing_of_them():
    text = scrape()
    assert "livefuse_networks_fell_back{" not in text
    assert 'livefuse_frames_total{job_id="main",side="out"} 297.0' in text
    assert 'livefuse_dropped_frames_total{job_id="main",reason="late"} 3.0' in text


def test_each_output_tells_its_state_for_how_long_and_its_losses():
    output = {
        "id": "2",
        "kind": "rtmp",
        "url": "rtmp://h/app/***",
        "state": "stalled",
        "connected": False,
        "packets": 70,
        "dropped": 9,
        "reconnects": 3,
        "state_s": 12.5,
    }
    text = scrape(outputs=[output])
    labels = 'job_id="main",kind="rtmp",output="2"'
    for state in get_args(OutputState):
        line = f'livefuse_output_state{{{labels},state="{state}",url="rtmp://h/app/***"}}'
        assert f"{line} {float(state == 'stalled')}" in text
    where = f'{{{labels},url="rtmp://h/app/***"}}'
    assert f"livefuse_output_connected{where} 0.0" in text
    assert f"livefuse_output_state_seconds{where} 12.5" in text
    assert f"livefuse_output_reconnects_total{where} 3.0" in text
    assert f"livefuse_output_packets_total{where} 70.0" in text
    assert f"livefuse_output_dropped_packets_total{where} 9.0" in text
    assert get_args(OutputState) == OUTPUT_STATES


LOAD = {
    "rung_index": 1,
    "changes": {"deadline": 2, "thermal": 1, "head_room": 2},
    "rung_seconds": {"everything": 90.5, "enhance_half": 12.0},
    "enhanced_frames": 270,
    "not_enhanced_frames": 30,
    "enhanced_share": 0.9,
    "pressures": ["thermal"],
}


def test_what_is_spared_is_a_metric():
    text = scrape(rung="enhance_half", load=LOAD)
    for line in (
        'livefuse_rung{job_id="main",name="enhance_half"} 1.0',
        'livefuse_rung_changes_total{job_id="main",reason="thermal"} 1.0',
        'livefuse_rung_seconds_total{job_id="main",name="everything"} 90.5',
        'livefuse_enhance_frames_total{enhanced="false",job_id="main"} 30.0',
    ):
        assert line in text
    assert "livefuse_rung{" not in scrape()


def test_health_and_what_was_made_anew_are_metrics():
    text = scrape(
        health="DEGRADED_INPUT",
        input={"state": "lost", "age_ms": 2500},
        restarts={"pipeline_hung": 2, "decode_died": 1},
        counts={"abandoned_threads": 2},
    )
    for health in get_args(Health):
        line = f'livefuse_job_health{{health="{health}",job_id="main"}}'
        assert f"{line} {float(health == 'DEGRADED_INPUT')}" in text
    assert 'livefuse_input_age_seconds{job_id="main",state="lost"} 2.5' in text
    assert 'livefuse_restarts_total{job_id="main",part="pipeline",reason="hung"} 2.0' in text
    assert 'livefuse_abandoned_threads_total{job_id="main"} 2.0' in text
    assert get_args(Health) == HEALTHS


def test_where_networks_run_and_who_watches(monkeypatch):
    networks = {"provider": "cuda", "wanted": "auto", "fell_back": False, "garbage": 0}
    output = {"id": "1", "kind": "webrtc", "url": "whep", "state": "live", "connected": True}
    text = scrape(networks=networks, outputs=[{**output, "viewers": 3}])
    assert 'livefuse_provider{job_id="main",provider="cuda"} 1.0' in text
    assert 'livefuse_output_viewers{job_id="main",kind="webrtc",output="1",url="whep"} 3.0' in text


def test_the_process_and_the_card_are_told():
    registry = create_metrics(list, version="1.2", read_gpu_bytes=lambda: (3, 7))
    text = render_metrics(registry)[0].decode()
    assert 'livefuse_build_info{version="1.2"} 1.0' in text
    assert 'livefuse_gpu_memory_bytes{kind="used"} 3.0' in text
    assert 'livefuse_gpu_memory_bytes{kind="total"} 7.0' in text
    assert "process_resident_memory_bytes" in text
    assert "process_open_fds" in text


def test_without_a_card_nothing_is_said_of_its_memory():
    assert "livefuse_gpu_memory_bytes{" not in scrape()


def test_marks_are_metrics():
    """(R51) How many generated pictures, keyframes and recordings bear them."""
    counts = {"marked_frames": 290, "keyframe_records": 5, "recordings_signed": 1}
    text = scrape(counts=counts)
    assert 'livefuse_marked_frames_total{job_id="main"} 290.0' in text
    assert 'livefuse_keyframe_records_total{job_id="main"} 5.0' in text
    assert 'livefuse_recordings_total{job_id="main",signed="true"} 1.0' in text
    assert 'livefuse_recordings_total{job_id="main",signed="false"} 0.0' in text
    assert 'livefuse_marked_frames_total{job_id="main"} 0.0' in scrape()


def test_refusals_and_what_was_logged_are_metrics(tmp_path):
    """(R52, R53) As the audit log counts them in this process."""
    audit = AuditLog(tmp_path, ManualClock())
    registry = create_metrics(list, read_audit=audit.read_figures)
    before = render_metrics(registry)[0].decode()
    assert 'livefuse_refusals_total{kind="face"} 0.0' in before
    assert "livefuse_audit_records_total{" not in before
    refusals = Refusals(RefuseConfig(), audit)
    for _ in range(2):
        with pytest.raises(RefusedError):
            refusals.check_text("Taylor Swift", "the look")
    audit.owe("job.stopped", job="a")
    text = render_metrics(registry)[0].decode()
    for line in (
        'livefuse_refusals_total{kind="prompt"} 2.0',
        'livefuse_refusals_total{kind="face"} 0.0',
        'livefuse_refusals_total{kind="consent"} 0.0',
        'livefuse_audit_records_total{event="refusal.prompt"} 2.0',
        'livefuse_audit_records_total{event="job.stopped"} 1.0',
        "livefuse_audit_blocked 0.0",
    ):
        assert line in text
    assert "Swift" not in text
    audit.is_full = True
    assert "livefuse_audit_blocked 1.0" in render_metrics(registry)[0].decode()


def test_every_metric_has_help_and_a_unit_where_it_counts_one():
    for family in create_metrics(list).collect():
        assert len(family.documentation) > 8, family.name
        assert not family.name.endswith(("_ms", "_mb")), family.name
