"""What the benches share: results, bounds, running a program and counting what it cost."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
LIVEFUSE = (sys.executable, "-m", "livefuse")


@dataclass
class Result:
    """One figure. `bound` is "<= 1.1" or the like; empty when it is told and not judged."""

    value: float
    unit: str
    bound: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    def is_within(self) -> bool:
        """Say whether the value keeps its bound."""
        if not self.bound:
            return True
        sign, limit = self.bound.split()
        return self.value <= float(limit) if sign == "<=" else self.value >= float(limit)


@dataclass
class Cost:
    """What one run of a program took, its children included."""

    wall_s: float
    cpu_s: float
    peak_mb: float


BENCHES: dict[str, Callable[[Path], dict[str, Result]]] = {}


def bench(
    *names: str,
) -> Callable[[Callable[[Path], dict[str, Result]]], Callable[[Path], dict[str, Result]]]:
    """Register a function that measures `names`; it is given a scratch folder."""

    def register(
        measure: Callable[[Path], dict[str, Result]],
    ) -> Callable[[Path], dict[str, Result]]:
        for name in names:
            BENCHES[name] = measure
        return measure

    return register


def run_counted(command: list[str], timeout_s: float = 300.0) -> Cost:
    """Run `command` to its end and return its cost; its words are shown only when it fails."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
    try:
        output, _ = _communicate(process, timeout_s)
    finally:
        if process.poll() is None:
            process.kill()
    wall_s = time.monotonic() - started
    usage = process_usage.pop(process.pid)
    if process.returncode != 0:
        raise RuntimeError(f"{command[:3]} ended with {process.returncode}:\n{output[-2000:]}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


process_usage: dict[int, Any] = {}


def _communicate(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[str, None]:
    """Read all output, then reap with wait4, which gives this child's own usage and no other's."""
    deadline = time.monotonic() + timeout_s
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    chunks: list[bytes] = []
    while True:
        chunk = process.stdout.read()
        if chunk:
            chunks.append(chunk)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            process.kill()
            raise TimeoutError(f"{process.args!r} took longer than {timeout_s} s")
        time.sleep(0.02)
    chunks.append(process.stdout.read() or b"")
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    process_usage[process.pid] = usage
    return b"".join(chunks).decode("utf-8", "replace"), None


def median(values: list[float]) -> float:
    """Return the median."""
    return float(statistics.median(values))


def read_stats(path: Path) -> dict[str, Any]:
    """Return what `--stats` wrote."""
    stats: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return stats


def report(results: dict[str, Result], json_path: Path | None) -> int:
    """Print the table, write the JSON; return 0 when every bound is kept."""
    width = max(map(len, results), default=10)
    print(f"{'name':<{width}}  {'value':>9} {'unit':<8} {'bound':<10} detail")
    for name, result in results.items():
        mark = "" if result.is_within() else "  MISSED"
        detail = ", ".join(f"{key} {value}" for key, value in result.detail.items())
        print(
            f"{name:<{width}}  {result.value:>9.3f} {result.unit:<8} {result.bound:<10} "
            f"{detail}{mark}"
        )
    if json_path is not None:
        data = {name: asdict(result) for name, result in results.items()}
        json_path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0 if all(result.is_within() for result in results.values()) else 1
