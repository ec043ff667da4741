"""The Grafana dashboard asks for metrics that there are, and leaves none of ours out."""

import json
import re
from pathlib import Path

from livefuse.control.daemon.figures import create_daemon_metrics
from livefuse.metrics import create_metrics
from tests.unit.control.daemon.test_figures import FIGURES

DASHBOARD = Path(__file__).parents[2] / "configs" / "grafana.json"
_SUFFIXES = ("_total", "_bucket", "_sum", "_count", "_info", "_created")
NOT_SHOWN = {
    "livefuse_frames": "fps tells it",
    "livefuse_output_connected": "the state tells it",
    "livefuse_output_state_seconds": "the graph of states tells it",
    "livefuse_output_packets": "losses tell it",
    "livefuse_refused_network_results": "restarts tell it",
    "livefuse_rung_seconds": "the rung tells it",
    "livefuse_enhance_frames": "the rung tells it",
    "livefuse_build": "of the program, not of a job",
}


def strip_suffix(name: str) -> str:
    return next((name.removesuffix(s) for s in _SUFFIXES if name.endswith(s)), name)


def list_asked() -> set[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    text = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    return {strip_suffix(n) for n in re.findall(r"\b(?:livefuse|process)_[a-z_]+", text)}


def list_there() -> set[str]:
    daemon = create_daemon_metrics(FIGURES, lambda: ({}, False))
    return {family.name for made in (create_metrics(list), daemon) for family in made.collect()}


def test_every_metric_that_the_dashboard_asks_for_is_there() -> None:
    assert {strip_suffix(name) for name in list_there()} >= list_asked() != set()


def test_every_metric_is_on_the_dashboard() -> None:
    own = {name for name in list_there() if name.startswith("livefuse")}
    assert own - list_asked() == set(NOT_SHOWN)


def test_panels_do_not_lie_on_one_another_and_have_titles() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert panel["title"]
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
