"""A live job whose enhance gets four times dearer than a frame's time, and cheap again.

In virtual time (`run_in_virtual_time`): the job's own rings, pipeline, governor, encode and output
side; what work costs is data, so every run is the same. `judge` reads the same figures of a run on
a real machine (tests/bench/overload.py).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.config import LADDER, load_config
from livefuse.face import Box, Face, Track
from livefuse.frame import Colour
from livefuse.ingest.base import MediaInfo
from livefuse.job.stages import Stages
from livefuse.pipeline.enhance_step import EnhanceStep
from livefuse.publish.fanout import FanOut
from livefuse.ring import RingClosed
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks
from livefuse.telemetry import Journal, Telemetry
from livefuse.token import TokenCell, create_token
from livefuse.virtual import VirtualClock
from tests.faces import create_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.pipeline.steps import Pipeline
    from livefuse.ring import RingMode

FPS = 30
FRAME_NS = NS_PER_S // FPS
OPERATIONS = ("detect", "align", "swap", "enhance")
# Of a machine that has room: 13 ms and 12 ms in its two threads.
CHEAP_MS = {"detect": 9.0, "align": 6.0, "swap": 6.0, "enhance": 6.0, "decode": 2.0, "encode": 5.0}
DEAR_MS = 4 * 1000 / FPS
_FLAP_S = 10.0
_NAMES = [rung.name for rung in LADDER]


@dataclass
class Seen:
    """What happened: (seconds, rung, reason) of each change, and the seconds of each frame."""

    rungs: list[tuple[float, str, str]] = field(default_factory=list)
    arrived_s: list[float] = field(default_factory=list)
    shown_s: list[float] = field(default_factory=list)
    statistics: dict[str, Any] = field(default_factory=dict)


class Figures(NamedTuple):
    """How it went; `back_s` counts from the load's end, infinite when it never came back."""

    down_s: float
    back_s: float
    fps_share: float
    flaps: int


def judge(seen: Seen, begin_s: float, end_s: float) -> Figures:
    """Return the figures of a load from `begin_s` to `end_s`, from a second before to ten after."""
    down = [at for at, name, reason in seen.rungs if reason in {"deadline", "queue_delay"}]
    full = [at for at, name, _ in seen.rungs if name == _NAMES[0] and at >= end_s]
    window = (begin_s - 1.0, end_s + 10.0)

    def count(times: list[float]) -> int:
        return sum(window[0] <= at < window[1] for at in times)

    return Figures(
        down_s=min((at - begin_s for at in down if at >= begin_s), default=float("inf")),
        back_s=(full[0] - end_s) if full else float("inf"),
        fps_share=count(seen.shown_s) / max(count(seen.arrived_s), 1),
        flaps=count_flaps(seen.rungs),
    )


def count_flaps(rungs: list[tuple[float, str, str]]) -> int:
    """Return how often a change was taken back within ten seconds."""
    flaps, before, way, since_s = 0, 0, 0, 0.0
    for at_s, name, _ in rungs:
        turn = 1 if _NAMES.index(name) > before else -1
        flaps += way not in (0, turn) and at_s - since_s <= _FLAP_S
        before, way, since_s = _NAMES.index(name), turn, at_s
    return flaps


class RungJournal(Journal):
    """Notes into `seen`."""

    def __init__(self, seen: Seen, now_s: Callable[[], float]) -> None:
        self._seen, self._now_s = seen, now_s

    def note_rung(self, name: str, reason: str) -> None:
        self._seen.rungs.append((self._now_s(), name, reason))

    def note_shown(self, frame: Any, *, is_held: bool) -> None:
        if not is_held:
            self._seen.shown_s.append(self._now_s())


class _Costs:
    """`CHEAP_MS`, and enhance dearer for a while."""

    def __init__(self, begin_s: float, end_s: float) -> None:
        self.clock: VirtualClock | None = None
        self._load = (begin_s, end_s)

    def get_cost_ns(self, work: str, spent_ns: int) -> int:
        assert self.clock is not None
        now_s = self.clock.now_ns() / NS_PER_S
        cost_ms = CHEAP_MS.get(work, 0.0)
        if work == "enhance" and self._load[0] <= now_s < self._load[1]:
            cost_ms = DEAR_MS
        return round(cost_ms * NS_PER_MS)


class StandIn:
    """A step that costs what the clock says, and does nothing else."""

    def __init__(self, change: Callable[[Any], None] = lambda state: None) -> None:
        self._change = change
        self._turn = -1

    def prepare(self, token: Any) -> None:
        pass

    def run(self, state: Any) -> None:
        self._change(state)

    def reset(self) -> None:
        pass


class StandInLooks(StandIn):
    """Looks at each third frame, or as the rung says."""

    def run(self, state: Any) -> None:
        self._turn += 1
        if self._turn % max(state.rung.detect_every, 3):
            state.spared.add("detect")
        points = [(20.0, 20.0)] * 5
        track = Track(1, Box(10.0, 10.0, 50.0, 50.0), points, 0.9, 0.0)  # type: ignore[arg-type]  # nobody reads it
        state.faces = [Face(track)]


class IdleEnhancer:
    """Costs what the clock says; remembers which frames it was asked for."""

    def prepare(self) -> None:
        pass

    def enhance(self, state: Any, face: Any, amount: float, *, reuse: bool = False) -> bool:
        return True

    def reset(self) -> None:
        pass


def run_in_virtual_time(
    begin_s: float, end_s: float, seconds: float, mode: RingMode = "live"
) -> Seen:
    """Run a job for `seconds`, enhance dear from `begin_s` to `end_s`; tell what happened."""
    config = load_config(settings=("http.enabled=false", "enhance.amount=1.0"))
    costs = _Costs(begin_s, end_s)
    clock = costs.clock = VirtualClock(costs)
    seen = Seen()
    telemetry = Telemetry(clock, RungJournal(seen, lambda: clock.now_ns() / NS_PER_S))
    pipeline = _create_pipeline(config, clock)
    media = MediaInfo(64, 64, float(FPS), Colour(), None, is_live=mode == "live")
    fanout = FanOut.create((), config, clock, lambda: None, lossless=True)
    stages = Stages(config, media, mode, telemetry, fanout, JobMarks("overload", REPLAY_KEYS))
    fanout.open(stages.streams)
    token = TokenCell(create_token(OPERATIONS, now_epoch_s=clock.epoch_s()))
    clock.start("camera", partial(_feed, stages, clock, seen, seconds))
    for name, run in stages.list_loops(pipeline, token).items():
        clock.start(name, partial(_end_quietly, run))
    try:
        clock.run_until_done()
    finally:
        clock.stop()
        pipeline.close()
        fanout.close(1.0)
    load = stages.load.describe() if stages.load is not None else {}
    seen.statistics = {**load, "dropped": telemetry.dropped(), "counts": telemetry.counts()}
    return seen


def _create_pipeline(config: Config, clock: VirtualClock) -> Pipeline:
    pipeline: Pipeline = create_pipeline(config)
    pipeline._clock = clock
    pipeline._steps = {
        "detect": StandInLooks(),
        "align": StandIn(),
        "swap": StandIn(),
        "enhance": EnhanceStep(IdleEnhancer(), config.enhance, is_restorer=False),
    }
    return pipeline


def _feed(stages: Stages, clock: VirtualClock, seen: Seen, seconds: float) -> None:
    """Be a camera."""
    for index in range(round(FPS * seconds)):
        clock.sleep_until(index * FRAME_NS)
        seen.arrived_s.append(clock.now_ns() / NS_PER_S)
        frame = stages.acquire_frame()
        if frame is not None:
            frame.pts, frame.arrival_ns = index * 3000, clock.now_ns()
            clock.charge("decode")
            stages.put_frame(frame)
    stages.end_input()


def _end_quietly(run: Callable[[], None]) -> None:
    with contextlib.suppress(RingClosed):
        run()
