"""No faults, for half an hour: does memory, threads, descriptors or delay creep.

Each second: RSS, threads and descriptors of livefuse and its children, the delay it says it adds,
and how late each picture reaches a viewer of the server behind it. Slopes are by least squares;
their standard errors by batches (a block of a tenth of the time counts as one observation), as
neighbouring samples tell the same.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.hold import sample_family
from tests.chaos.control import Victim
from tests.chaos.peers import Camera, Server, make_films, read_now_s
from tests.chaos.run import KEY, Observer, Outcome, wait_good
from tests.chaos.sheet import draw_curves

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM_UP_SHARE = 0.2
_BATCHES = 10
_ERRORS_ALLOWED = 3.0
_NOISE_MB_PER_MIN = 0.1
"""Three MB in half an hour; below that it is the allocator's."""
LATENCY_MS_PER_MIN = 1.0


@dataclass(slots=True)
class Slope:
    """A trend per minute and its standard error."""

    per_min: float
    error: float

    def __str__(self) -> str:
        return f"{self.per_min:+.4f} +- {self.error:.4f} a minute"

    def is_noise(self, least: float) -> bool:
        """Say whether it is not more than `least`, or than its own error allows to tell."""
        return abs(self.per_min) <= max(least, _ERRORS_ALLOWED * self.error)


@dataclass(slots=True)
class Second:
    """One sample; times in s after the epoch."""

    at_s: float
    rss_mb: float
    threads: int
    fds: int
    latency_ms: float


def fit_slope(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the slope per minute; its error is that of the means of ten blocks about the line."""
    if len(values) < _BATCHES:
        return Slope(0.0, float("inf"))
    minutes = np.array(times_s) / 60
    slope, start = np.polyfit(minutes, np.array(values), 1)
    rest = np.array(values) - (slope * minutes + start)
    blocks = np.array([block.mean() for block in np.array_split(rest, _BATCHES)])
    middles = np.array([block.mean() for block in np.array_split(minutes, _BATCHES)])
    spread = float(((middles - middles.mean()) ** 2).sum())
    error = np.sqrt(float((blocks**2).sum()) / (_BATCHES - 2) / max(spread, 1e-12))
    return Slope(float(slope), float(error))


def run_quiet(minutes: float, variant: str, target: Path) -> int:
    """Measure, print, write quiet.json and quiet.png; return 0 when nothing creeps."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="livefuse-quiet-") as folder:
        seconds, outcome = _measure(Path(folder), minutes * 60, variant)
    delays = _smooth_arrivals(outcome)
    rows, is_kept = judge_quiet(seconds, delays)
    print("\n".join(rows))
    times = [second.at_s for second in seconds]
    curves = {
        "RSS, MB": (times, [second.rss_mb for second in seconds]),
        "threads": (times, [float(second.threads) for second in seconds]),
        "descriptors": (times, [float(second.fds) for second in seconds]),
        "delay that livefuse adds, ms": (times, [second.latency_ms for second in seconds]),
        "delay at the viewer, ms": ([t for t, _ in delays], [d for _, d in delays]),
    }
    draw_curves(curves, target / "quiet.png")
    report = {
        "minutes": minutes, "variant": variant, "is_kept": is_kept, "rows": rows,
        "end": outcome.end, "seconds": [asdict(second) for second in seconds],
    }  # fmt: skip
    (target / "quiet.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(f"{'nothing creeps' if is_kept else 'FAILED'}; see {target}")
    return 0 if is_kept else 1


def _measure(folder: Path, length_s: float, variant: str) -> tuple[list[Second], Outcome]:
    films = make_films(folder)
    outcome = Outcome(time.monotonic_ns())
    victim = Victim(folder)
    seconds: list[Second] = []
    with Camera(films, outcome.epoch_ns) as camera, Server() as server:
        try:
            targets = [server.url(KEY), str(folder / "record.mkv")]
            victim.start(camera.url, targets, variant, [f"safety.folder={folder / 'private'}"])
            wait_good(victim)
            observer = Observer(server.url(KEY), outcome.epoch_ns, outcome.arrivals)
            end_s = read_now_s(outcome.epoch_ns) + length_s
            while (at_s := read_now_s(outcome.epoch_ns)) < end_s and victim.is_running():
                status = victim.read_status() or {}
                latency_ms = float(status.get("latency_recent", {}).get("p50_ms", 0.0))
                seconds.append(Second(at_s, *sample_family(victim.pid), latency_ms))
                time.sleep(max(at_s + 1.0 - read_now_s(outcome.epoch_ns), 0.0))
            outcome.end = victim.end()
            observer.close()
        finally:
            victim.close()
    return seconds, outcome


def _smooth_arrivals(outcome: Outcome) -> list[tuple[float, float]]:
    """Return (time, ms) for each second: median lateness of pictures, from the earliest."""
    least_s = min((at_s - pts_s for at_s, pts_s in outcome.arrivals), default=0.0)
    by_second: dict[int, list[float]] = {}
    for at_s, pts_s in outcome.arrivals:
        by_second.setdefault(int(at_s), []).append((at_s - pts_s - least_s) * 1000)
    return [(float(second), float(np.median(values))) for second, values in by_second.items()]


def judge_quiet(seconds: list[Second], delays: list[tuple[float, float]]) -> tuple[list[str], bool]:
    """Return the lines to print, and whether all is steady after the first fifth."""
    steady = seconds[int(len(seconds) * WARM_UP_SHARE) :]
    steady_delays = delays[int(len(delays) * WARM_UP_SHARE) :]
    times = [second.at_s for second in steady]
    memory = fit_slope(times, [second.rss_mb for second in steady])
    latency = fit_slope(times, [second.latency_ms for second in steady])
    viewer = fit_slope([t for t, _ in steady_delays], [d for _, d in steady_delays])
    checks = {
        f"RSS {memory} MB": memory.is_noise(_NOISE_MB_PER_MIN),
        f"threads {_tell_range([second.threads for second in steady])}": _is_constant(
            [second.threads for second in steady]
        ),
        f"descriptors {_tell_range([second.fds for second in steady])}": _is_constant(
            [second.fds for second in steady]
        ),
        f"delay that livefuse adds {latency} ms": abs(latency.per_min) <= LATENCY_MS_PER_MIN,
        f"delay at the viewer {viewer} ms": abs(viewer.per_min) <= LATENCY_MS_PER_MIN,
    }
    rows = [f"{'ok' if kept else 'FAILED':<7} {text}" for text, kept in checks.items()]
    return rows, bool(steady) and all(checks.values())


def _is_constant(values: list[int]) -> bool:
    """Say whether it is where it was; what comes and goes within a second, as a question over
    HTTP does, is no growth."""
    if not values:
        return False
    third = max(len(values) // 3, 1)
    return bool(np.median(values[:third]) == np.median(values[-third:]))


def _tell_range(values: list[int]) -> str:
    return f"{min(values)}..{max(values)}" if values else "none"
