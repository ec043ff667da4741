"""What a scraper reads of a job."""

import msgspec

from livefuse.clock import ManualClock
from livefuse.config import ModelsConfig
from livefuse.metrics import create_metrics, render_metrics
from livefuse.runtime.session import SessionCache
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
    assert 'livefuse_networks_fell_back{job="main",provider="cpu",wanted="auto"} 1.0' in text
    assert 'livefuse_refused_network_results_total{job="main"} 0.0' in text


def test_a_job_without_networks_says_nothing_of_them():
    text = scrape()
    assert "livefuse_networks_fell_back{" not in text
    assert 'livefuse_frames_total{job="main",side="out"} 297.0' in text
    assert 'livefuse_dropped_frames_total{job="main",reason="late"} 3.0' in text
