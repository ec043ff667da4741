"""What the daemon tells Prometheus: of itself, and of all its workers in one text."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from livefuse.control.api.views import JobPhase
from livefuse.control.daemon.exposition import OWN, merge_expositions
from livefuse.errors import LivefuseError
from livefuse.metrics import AuditCollector, render_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.core import Metric

    from livefuse.control.daemon.admission import Demand, Free
    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.worker import WorkerHandle
    from livefuse.metrics import ReadAudit

DAEMON: Final = "daemon"
"""The `worker` of what the daemon tells of its own process."""
_PATIENCE_S: Final = 1.5


class DaemonFigures(NamedTuple):
    """How the daemon is now.

    `phases` counts its jobs by phase; `workers` by what they do (busy, spare, starting, ending).
    `used` and `free` are what jobs use, and what one job more would find.
    """

    epoch: int
    phases: Mapping[str, int]
    restarts: Mapping[str, int]
    waiting: int
    workers: Mapping[str, int]
    answering: int
    lost: int
    used: Demand
    free: Free


class DaemonCollector(Collector):
    """Turns figures into metrics."""

    def __init__(self, figures: DaemonFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield what a scraper is told."""
        now = self._figures
        yield _gauge("epoch", "How often a daemon was started with this store", now.epoch)
        jobs = _gauge("jobs", "Jobs by where they are in their life", labels=["phase"])
        for phase in get_args(JobPhase):
            jobs.add_metric([phase], now.phases.get(phase, 0))
        yield jobs
        yield _gauge("queue_length", "Jobs that wait for their turn", now.waiting)
        restarts = CounterMetricFamily(
            "livefuse_job_restarts",
            "Workers that a job has lost since it was told what to do",
            labels=["job_id"],
        )
        for job_id, amount in now.restarts.items():
            restarts.add_metric([job_id], amount)
        yield restarts
        yield from self._collect_workers()
        yield from self._collect_room()

    def _collect_workers(self) -> Iterator[Metric]:
        now = self._figures
        workers = _gauge("workers", "Worker processes by what they do", labels=["state"])
        for state, amount in now.workers.items():
            workers.add_metric([state], amount)
        yield workers
        yield _gauge("workers_answering", "Workers that told their figures", now.answering)
        yield CounterMetricFamily(
            f"{OWN}lost_workers", "Workers that were lost with jobs", value=now.lost
        )

    def _collect_room(self) -> Iterator[Metric]:
        used, free = self._figures.used, self._figures.free
        cores = _gauge(
            "cores", "Cores that jobs use, and that one job more would find", labels=["kind"]
        )
        cores.add_metric(["used"], used.cores)
        cores.add_metric(["free"], free.cores)
        yield cores
        if free.memory_bytes is not None:
            yield _gauge(
                "free_memory_bytes", "Memory that one job more would find", free.memory_bytes
            )


def _gauge(
    name: str, text: str, value: float | None = None, labels: list[str] | None = None
) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{OWN}{name}", text, value=value, labels=labels)


def create_daemon_metrics(figures: DaemonFigures, read_audit: ReadAudit) -> CollectorRegistry:
    """Return the registry of the daemon's own metrics."""
    registry = CollectorRegistry()
    registry.register(DaemonCollector(figures))
    registry.register(AuditCollector(read_audit))
    ProcessCollector(registry=registry)
    return registry


async def collect_metrics(daemon: Daemon) -> bytes:
    """Return the text; of a worker that does not answer in time nothing is in it."""
    workers = [worker for worker in daemon.pool.workers if worker.is_alive]
    told = dict(zip(workers, await asyncio.gather(*map(_ask, workers)), strict=True))
    texts = {str(worker.number): text for worker, text in told.items() if text}
    registry = create_daemon_metrics(_look(daemon, len(texts)), daemon.audit.read_figures)
    own = render_metrics(registry)[0].decode()
    return "\n".join([*merge_expositions({**texts, DAEMON: own}), ""]).encode()


async def _ask(worker: WorkerHandle) -> str:
    try:
        reply = await worker.ask("GET", "/metrics", timeout_s=_PATIENCE_S)
    except LivefuseError:
        return ""
    return reply.data.decode("utf-8", "replace")


def _look(daemon: Daemon, answering: int) -> DaemonFigures:
    records = daemon.book.list_records()
    states = Counter(map(_name_state, daemon.pool.workers))
    used, free = daemon.supervisor.doorkeeper.measure_room()
    return DaemonFigures(
        epoch=daemon.pool.epoch,
        phases=Counter(record.phase for record in records),
        restarts={record.job_id: record.restarts for record in records},
        waiting=daemon.supervisor.doorkeeper.count_waiting(),
        workers={state: states[state] for state in ("busy", "spare", "starting", "ending")},
        answering=answering,
        lost=daemon.pool.deaths,
        used=used,
        free=free,
    )


def _name_state(worker: WorkerHandle) -> str:
    if worker.ended_by or worker.has_ended.is_set():
        return "ending"
    if not worker.is_ready.is_set():
        return "starting"
    return "busy" if worker.jobs else "spare"
