"""overload_*: enhance gets four times as dear as a frame's time for a while, then cheap again.

A live job on this machine, its own threads, rings, encode and file, 360p30. The operations are
stand-ins that wait, as for networks on a graphics card, so that the control is measured and not
the processor. tests/unit/test_overload.py is the same in virtual time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from unittest import mock

from livefuse.clock import NS_PER_S, SystemClock
from livefuse.config import LogConfig, load_config
from livefuse.job.spec import JobSpec
from livefuse.pipeline.enhance_step import ENHANCERS
from livefuse.pipeline.steps import STEPS
from livefuse.telemetry import set_up_logging
from livefuse.workers.local import Worker
from tests.bench.harness import Result, bench
from tests.overload import (
    CHEAP_MS,
    DEAR_MS,
    IdleEnhancer,
    RungJournal,
    Seen,
    StandIn,
    StandInLooks,
    judge,
)

if TYPE_CHECKING:
    from pathlib import Path

_BEFORE_S, _LOAD_S, _AFTER_S = 6.0, 15.0, 12.0
_SOURCE = "demo:?size=640x360&audio=0"


class _Journal(RungJournal):
    """Notes drops too: what was dropped or shown has arrived."""

    def note_drop(self, frame: Any, reason: str) -> None:
        self._seen.arrived_s.append(self._now_s())

    def note_shown(self, frame: Any, *, is_held: bool) -> None:
        super().note_shown(frame, is_held=is_held)
        if not is_held:
            self._seen.arrived_s.append(self._now_s())


class _Waiter(IdleEnhancer):
    """Takes as long as it is told to."""

    def __init__(self) -> None:
        self.cost_ms = CHEAP_MS["enhance"]

    def enhance(self, state: Any, face: Any, amount: float, *, reuse: bool = False) -> bool:
        time.sleep(0.0 if reuse else self.cost_ms / 1000)
        return True


class _Looks(StandInLooks):
    def run(self, state: Any) -> None:
        super().run(state)
        time.sleep(0.0 if "detect" in state.spared else CHEAP_MS["detect"] / 1000)


class _Align(StandIn):
    def run(self, state: Any) -> None:
        time.sleep(CHEAP_MS["align"] / 1000)


@bench("overload_down_s", "overload_back_s", "overload_fps_share", "overload_flaps")
def measure_overload(folder: Path) -> dict[str, Result]:
    """Down within a second, the rate held, back within ten seconds of the end, one flap at most."""
    set_up_logging(LogConfig(level="warning"))
    waiter = _Waiter()
    settings = ("http.enabled=false", "enhance.model=waiter", f"safety.folder={folder / 'private'}")
    worker = Worker(load_config(settings=settings), SystemClock())
    spec = JobSpec(_SOURCE, (str(folder / "out.mkv"),), ("detect", "align", "enhance"), mode="live")
    job = worker.add_job("overload", spec)
    seen, started_ns = Seen(), time.monotonic_ns()
    job.telemetry.journal = _Journal(seen, lambda: (time.monotonic_ns() - started_ns) / NS_PER_S)
    stand_ins = {"detect": lambda context: _Looks(), "align": lambda context: _Align()}
    with (
        mock.patch.dict(ENHANCERS, {"waiter": lambda context: waiter}),
        mock.patch.dict(STEPS, stand_ins),
    ):
        job.start()
        try:
            job.wait_started(30)
            begin_s, end_s, lines = _burden(job, waiter, started_ns)
        finally:
            job.stop()
    figures = judge(seen, begin_s, end_s)
    detail = {
        "rungs": " ".join(f"{at - begin_s:+.2f}s:{name}({why})" for at, name, why in seen.rungs),
        "dropped": job.telemetry.dropped(),
        "load_s": _LOAD_S,
        "per_second": "; ".join(lines),
    }
    return {
        "overload_down_s": Result(figures.down_s, "s", "<= 1.0", detail),
        "overload_back_s": Result(figures.back_s, "s", "<= 10"),
        "overload_fps_share": Result(figures.fps_share, "", ">= 0.95"),
        "overload_flaps": Result(float(figures.flaps), "", "<= 1"),
    }


def _burden(job: Any, waiter: _Waiter, started_ns: int) -> tuple[float, float, list[str]]:
    """Let the load come and go; return when, and a line for each second."""
    lines: list[str] = []

    def now_s() -> float:
        return (time.monotonic_ns() - started_ns) / NS_PER_S

    def watch(seconds: float) -> None:
        for _ in range(round(seconds)):
            time.sleep(1.0)
            stats = job.statistics()
            lines.append(f"{now_s():.0f}s {stats.fps_in:.0f}>{stats.fps_out:.0f} {stats.rung}")

    watch(_BEFORE_S)
    begin_s, waiter.cost_ms = now_s(), DEAR_MS
    watch(_LOAD_S)
    end_s, waiter.cost_ms = now_s(), CHEAP_MS["enhance"]
    watch(_AFTER_S)
    return begin_s, end_s, lines
