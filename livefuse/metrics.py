"""The figures of jobs as Prometheus metrics, made when somebody scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from livefuse.measures import Distribution
    from livefuse.telemetry import Statistics, Telemetry

    ReadGpuBytes = Callable[[], tuple[int, int] | None]
    ReadAudit = Callable[[], tuple[Mapping[str, int], bool]]
    """How many records of each event were written, and whether the last one could not be."""

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
"""Of what `render_metrics` returns."""
OUTPUT_STATES: Final = ("connecting", "live", "stalled", "refused", "closed")
HEALTHS: Final = (
    "LOADING", "ONLINE", "DEGRADED_INPUT", "DEGRADED_INFERENCE", "ERROR", "STOPPED",
)  # fmt: skip
REFUSALS: Final = {
    "refusal.prompt": "prompt",
    "refusal.face": "face",
    "refusal.address": "address",
    "job.refused": "consent",
}
"""Event of the audit log -> its word in `livefuse_refusals`."""
_BOUNDS_MS: Final = (5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 120.0, 200.0, 500.0, 1000.0)


class _JobCollector(Collector):
    """Turns snapshots into metrics when somebody scrapes; nothing is kept up to date in between."""

    def __init__(self, jobs: Callable[[], list[tuple[Statistics, Telemetry]]]) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        frames = CounterMetricFamily(
            "livefuse_frames", "Pictures that came in and went out", labels=["job_id", "side"]
        )
        drops = CounterMetricFamily(
            "livefuse_dropped_frames",
            "Pictures that were not shown, by reason",
            labels=["job_id", "reason"],
        )
        fps = GaugeMetricFamily(
            "livefuse_fps", "Pictures a second, over the last seconds", labels=["job_id", "side"]
        )
        latency = HistogramMetricFamily(
            "livefuse_added_latency_seconds",
            "From a picture's arrival until it is encoded",
            labels=["job_id"],
        )
        steps = HistogramMetricFamily(
            "livefuse_step_seconds",
            "How long a step takes for a picture",
            labels=["job_id", "step"],
        )
        jobs = self._jobs()
        for stats, telemetry in jobs:
            job = stats.job
            for side in ("in", "out"):
                frames.add_metric([job, side], getattr(stats, f"frames_{side}"))
                fps.add_metric([job, side], getattr(stats, f"fps_{side}"))
            for reason, amount in stats.dropped.items():
                drops.add_metric([job, reason], amount)
            _add_histogram(latency, [job], telemetry.latency)
            for name, step in telemetry.steps.copy().items():
                _add_histogram(steps, [job, name], step)
        yield from (frames, drops, fps, latency, steps)
        yield from _collect_health([stats for stats, _ in jobs])
        yield from _collect_outputs([stats for stats, _ in jobs])
        yield from _collect_networks([stats for stats, _ in jobs])
        yield from _collect_load([stats for stats, _ in jobs])
        yield from _collect_marks([stats for stats, _ in jobs])


def _collect_health(jobs: list[Statistics]) -> Iterator[Metric]:
    health = GaugeMetricFamily(
        "livefuse_job_health", "1 for the word that it is in", labels=["job_id", "health"]
    )
    age = GaugeMetricFamily(
        "livefuse_input_age_seconds", "Since the last picture came", labels=["job_id", "state"]
    )
    restarts = CounterMetricFamily(
        "livefuse_restarts",
        "Parts of a job that were made anew",
        labels=["job_id", "part", "reason"],
    )
    threads = CounterMetricFamily(
        "livefuse_abandoned_threads", "Threads that hung and were left behind", labels=["job_id"]
    )
    for stats in jobs:
        for name in HEALTHS:
            health.add_metric([stats.job, name], float(stats.health == name))
        if (age_ms := stats.input.get("age_ms")) is not None:
            age.add_metric([stats.job, stats.input["state"]], age_ms / 1e3)
        for name, amount in stats.restarts.items():
            part, _, reason = name.partition("_")
            restarts.add_metric([stats.job, part, reason], amount)
        threads.add_metric([stats.job], stats.counts.get("abandoned_threads", 0))
    yield from (health, age, restarts, threads)


def _collect_outputs(jobs: list[Statistics]) -> Iterator[Metric]:
    labels = ["job_id", "output", "kind", "url"]
    state = GaugeMetricFamily(
        "livefuse_output_state", "1 for the state that it is in", labels=[*labels, "state"]
    )
    connected = GaugeMetricFamily("livefuse_output_connected", "1 when connected", labels=labels)
    viewers = GaugeMetricFamily("livefuse_output_viewers", "Who watches now", labels=labels)
    seconds = GaugeMetricFamily(
        "livefuse_output_state_seconds", "For how long it has been in its state", labels=labels
    )
    counts = {
        "reconnects": CounterMetricFamily(
            "livefuse_output_reconnects", "Connections after the first", labels=labels
        ),
        "packets": CounterMetricFamily("livefuse_output_packets", "Packets sent", labels=labels),
        "dropped": CounterMetricFamily(
            "livefuse_output_dropped_packets", "Packets not sent", labels=labels
        ),
    }
    for stats in jobs:
        for output in stats.outputs:
            of = [stats.job, str(output.get("id", "")), output["kind"], output["url"]]
            for name in OUTPUT_STATES:
                state.add_metric([*of, name], float(output["state"] == name))
            connected.add_metric(of, float(output["connected"]))
            viewers.add_metric(of, float(output.get("viewers", 0)))
            seconds.add_metric(of, float(output.get("state_s", 0.0)))
            for name, family in counts.items():
                family.add_metric(of, float(output.get(name, 0)))
    yield from (state, connected, viewers, seconds, *counts.values())


def _collect_networks(jobs: list[Statistics]) -> Iterator[Metric]:
    provider = GaugeMetricFamily(
        "livefuse_provider", "1 for where networks run", labels=["job_id", "provider"]
    )
    fell_back = GaugeMetricFamily(
        "livefuse_networks_fell_back",
        "1 when networks run on the processor since no better device can be used",
        labels=["job_id", "provider", "wanted"],
    )
    garbage = CounterMetricFamily(
        "livefuse_refused_network_results", "Results that could not be used", labels=["job_id"]
    )
    for stats in jobs:
        if networks := stats.networks:
            provider.add_metric([stats.job, networks["provider"]], 1.0)
            labels = [stats.job, networks["provider"], networks["wanted"]]
            fell_back.add_metric(labels, float(networks["fell_back"]))
            garbage.add_metric([stats.job], networks["garbage"])
    yield from (provider, fell_back, garbage)


def _collect_load(jobs: list[Statistics]) -> Iterator[Metric]:
    """What is spared under load; nothing for jobs that never spare anything."""
    rung = GaugeMetricFamily(
        "livefuse_rung", "How much is spared: 0 is nothing", labels=["job_id", "name"]
    )
    changes = CounterMetricFamily(
        "livefuse_rung_changes", "Changes of the rung", labels=["job_id", "reason"]
    )
    seconds = CounterMetricFamily(
        "livefuse_rung_seconds", "Time spent on a rung", labels=["job_id", "name"]
    )
    frames = CounterMetricFamily(
        "livefuse_enhance_frames", "Frames with a face to enhance", labels=["job_id", "enhanced"]
    )
    for stats in jobs:
        if load := stats.load:
            rung.add_metric([stats.job, stats.rung], float(load["rung_index"]))
            for reason, amount in load["changes"].items():
                changes.add_metric([stats.job, reason], amount)
            for name, lasted_s in load["rung_seconds"].items():
                seconds.add_metric([stats.job, name], lasted_s)
            frames.add_metric([stats.job, "true"], load["enhanced_frames"])
            frames.add_metric([stats.job, "false"], load["not_enhanced_frames"])
    yield from (rung, changes, seconds, frames)


def _collect_marks(jobs: list[Statistics]) -> Iterator[Metric]:
    """What of a job bears our marks: pictures, keyframes, recordings."""
    frames = CounterMetricFamily(
        "livefuse_marked_frames",
        "Generated pictures that went out, with the label and the invisible mark",
        labels=["job_id"],
    )
    records = CounterMetricFamily(
        "livefuse_keyframe_records", "Keyframes with a signed record in them", labels=["job_id"]
    )
    recordings = CounterMetricFamily(
        "livefuse_recordings", "Recordings that are closed, by C2PA", labels=["job_id", "signed"]
    )
    for stats in jobs:
        frames.add_metric([stats.job], stats.counts.get("marked_frames", 0))
        records.add_metric([stats.job], stats.counts.get("keyframe_records", 0))
        for signed, name in (("true", "recordings_signed"), ("false", "recordings_unsigned")):
            recordings.add_metric([stats.job, signed], stats.counts.get(name, 0))
    yield from (frames, records, recordings)


def _add_histogram(
    family: HistogramMetricFamily, labels: list[str], distribution: Distribution
) -> None:
    counts = distribution.cumulative(_BOUNDS_MS)
    buckets = [(str(b / 1e3), float(n)) for b, n in zip(_BOUNDS_MS, counts, strict=True)]
    buckets.append(("+Inf", float(distribution.count)))
    family.add_metric(labels, buckets=buckets, sum_value=distribution.sum_ms / 1e3)


class _MachineCollector(Collector):
    """What is running, and the graphics card's memory where there is one in use."""

    def __init__(self, version: str, read_gpu_bytes: ReadGpuBytes) -> None:
        self._version = version
        self._read_gpu_bytes = read_gpu_bytes

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("livefuse_build", "What is running", {"version": self._version})
        memory = GaugeMetricFamily(
            "livefuse_gpu_memory_bytes", "Memory of the graphics card", labels=["kind"]
        )
        for kind, amount in zip(("used", "total"), self._read_gpu_bytes() or (), strict=False):
            memory.add_metric([kind], float(amount))
        yield memory


class AuditCollector(Collector):
    """What this process has written into the audit log, and what it has refused."""

    def __init__(self, read_audit: ReadAudit) -> None:
        self._read_audit = read_audit

    def collect(self) -> Iterator[Metric]:
        """Yield what a scraper is told."""
        records = CounterMetricFamily(
            "livefuse_audit_records", "Records written into the audit log", labels=["event"]
        )
        refusals = CounterMetricFamily(
            "livefuse_refusals",
            "What was refused: a prompt that names somebody, a denied face, want of consent",
            labels=["kind"],
        )
        written, is_blocked = self._read_audit()
        for event, amount in written.items():
            records.add_metric([event], amount)
        for event, kind in REFUSALS.items():
            refusals.add_metric([kind], written.get(event, 0))
        blocked = GaugeMetricFamily(
            "livefuse_audit_blocked",
            "1 when the audit log could not be written the last time, so that jobs stop",
            value=float(is_blocked),
        )
        yield from (records, refusals, blocked)


def create_metrics(
    jobs: Callable[[], list[tuple[Statistics, Telemetry]]],
    *,
    version: str = "",
    read_gpu_bytes: ReadGpuBytes = lambda: None,
    read_audit: ReadAudit = lambda: ({}, False),
) -> CollectorRegistry:
    """Return a Prometheus registry that reads `jobs` and this process whenever it is scraped.

    `read_gpu_bytes` gives what is used and what there is of the graphics card's memory.
    """
    registry = CollectorRegistry()
    registry.register(_JobCollector(jobs))
    registry.register(_MachineCollector(version, read_gpu_bytes))
    registry.register(AuditCollector(read_audit))
    ProcessCollector(registry=registry)
    return registry


def render_metrics(registry: CollectorRegistry) -> tuple[bytes, str]:
    """Return the metrics as text for a scraper, and its content type."""
    return generate_latest(registry), CONTENT_TYPE
