"""The metrics of all workers and of the daemon as one text for Prometheus."""

from __future__ import annotations

import asyncio
import os
import resource
from collections import Counter
from typing import TYPE_CHECKING, Final, get_args

from livefuse.control.api.views import JobPhase
from livefuse.errors import LivefuseError
from livefuse.machine import read_rss_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.control.daemon.context import Daemon
    from livefuse.control.daemon.worker import WorkerHandle

_PATIENCE_S: Final = 1.5
_HELP: Final = "# HELP "
_TYPE: Final = "# TYPE "


async def collect_metrics(daemon: Daemon) -> bytes:
    """Return the text; of a worker that does not answer in time nothing is in it."""
    workers = [worker for worker in daemon.pool.workers if worker.is_alive]
    texts = await asyncio.gather(*map(_ask, workers))
    return "\n".join([*merge_texts(texts), *_describe(daemon, sum(map(bool, texts))), ""]).encode()


async def _ask(worker: WorkerHandle) -> str:
    try:
        reply = await worker.ask("GET", "/metrics", timeout_s=_PATIENCE_S)
    except LivefuseError:
        return ""
    return reply.data.decode("utf-8", "replace")


def merge_texts(texts: Iterable[str]) -> list[str]:
    """Return the lines of several expositions as one: each family once, with what all say of it.

    Figures of a process (`process_`, `livefuse_process_`), which bear no name of a job, are left
    out: they would stand there several times.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, dict[str, None]] = {}
    for text in texts:
        family = ""
        for line in text.splitlines():
            if line.startswith((_HELP, _TYPE)):
                family = line.split(" ", 3)[2]
                head = heads.setdefault(family, [])
                samples.setdefault(family, {})
                if line not in head and len(head) < 2:  # noqa: PLR2004 - HELP and TYPE
                    head.append(line)
            elif line and not line.startswith("#"):
                samples.setdefault(family, {})[line] = None
    merged: list[str] = []
    for family, head in heads.items():
        kept = [line for line in samples[family] if "job" in line.partition(" ")[0]]
        if kept:
            merged += [*head, *kept]
    return merged


def _describe(daemon: Daemon, answered: int) -> list[str]:
    """Return the daemon's own figures."""
    phases = Counter(record.phase for record in daemon.book.list_records())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    rows: tuple[tuple[str, str, str, list[tuple[str, float]]], ...] = (
        (
            "jobs",
            "gauge",
            "Jobs by where they are in their life",
            [(f'{{phase="{phase}"}}', phases[phase]) for phase in get_args(JobPhase)],
        ),
        ("workers", "gauge", "Worker processes", [("", len(daemon.pool.workers))]),
        (
            "busy_workers",
            "gauge",
            "Workers that have jobs",
            [("", sum(bool(worker.jobs) for worker in daemon.pool.workers))],
        ),
        ("workers_answering", "gauge", "Workers that told their figures", [("", answered)]),
        ("lost_workers_total", "counter", "Workers lost with jobs", [("", daemon.pool.deaths)]),
        ("rss_bytes", "gauge", "Memory of the daemon", [("", read_rss_bytes() or 0)]),
        (
            "cpu_seconds_total",
            "counter",
            "Processor time of the daemon",
            [("", usage.ru_utime + usage.ru_stime)],
        ),
        ("open_files", "gauge", "Files the daemon holds", [("", _count_files())]),
    )
    lines: list[str] = []
    for name, kind, text, values in rows:
        full = f"livefuse_daemon_{name}"
        lines += [f"{_HELP}{full} {text}", f"{_TYPE}{full} {kind}"]
        lines += [f"{full}{labels} {value}" for labels, value in values]
    return lines


def _count_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, nothing more
    except OSError:
        return 0
