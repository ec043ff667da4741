"""One server behind a ring that drops the oldest: frames in, costs, delays, decisions out.

Everything is drawn from a seed, so that two controllers meet the same machine.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from livefuse.clock import NS_PER_MS
from livefuse.config import LADDER
from livefuse.governor import get_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from livefuse.config import Rung

FRAME_MS = 1000 / 30
# Of a middling machine; a profile makes all of them slower or faster together.
COSTS_MS = {"detect": 9.0, "align": 5.0, "swap": 7.0, "enhance": 9.0}


class Controller(Protocol):
    """Chooses a rung for each frame."""

    rung: int

    def note_frame(self, now_ns: int, costs_ms: dict[str, float], queue_delay_ms: float) -> object:
        """Take what a frame cost and how long it waited."""

    def must_skip_enhance(self, delay_ms: float) -> bool:
        """Say whether enhance is left out on a frame of that age."""


@dataclass(frozen=True)
class Profile:
    """How slow the machine is, frame by frame: 1.0 is as COSTS_MS says."""

    name: str
    speed: NDArray[np.float64]
    noise: NDArray[np.float64]  # (frames, stages)


class Outcome(NamedTuple):
    """What came of one profile under one controller.

    Dropped: lost in the ring, too late. Thinned: left out on purpose by a rung.
    """

    p95_ms: float
    p99_ms: float
    dropped_share: float
    thinned_share: float
    enhanced_share: float
    flaps_per_min: float
    changes: float


def create_profile(seed: int, seconds: int = 120) -> Profile:
    """Return a machine: a level, a busy neighbour now and then, bursts, noise."""
    random = np.random.default_rng(seed)
    frames = 30 * seconds
    speed = np.full(frames, random.uniform(0.8, 1.4))
    for _ in range(random.poisson(seconds / 30)):
        start, length = random.integers(frames), random.integers(60, 450)
        speed[start : start + length] *= random.uniform(1.2, 1.6)
    for start in random.integers(0, frames, random.poisson(seconds / 6)):
        speed[start : start + random.integers(1, 4)] *= random.uniform(1.5, 3.0)
    noise = random.lognormal(0.0, 0.15, (frames, len(COSTS_MS)))
    return Profile(f"seed {seed}", speed, noise)


class _Server:
    """Works on one frame after the other, as the controller's rung says."""

    def __init__(self, profile: Profile, controller: Controller) -> None:
        self._profile = profile
        self._controller = controller
        self._since_look = self._since_enhance = 0
        self.enhanced = 0

    def work(self, index: int, delay_ms: float, *, is_sounding: bool = False) -> dict[str, float]:
        """Return what frame `index` cost, by stage; `is_sounding`: enhance is done, not seen."""
        rung = LADDER[self._controller.rung]
        self._since_look, self._since_enhance = self._since_look + 1, self._since_enhance + 1
        speed, noise = self._profile.speed[index], self._profile.noise[index]
        costs = {
            stage: cost_ms * speed * noise[number]
            for number, (stage, cost_ms) in enumerate(COSTS_MS.items())
            if self._runs(rung, stage, delay_ms) or (is_sounding and stage == "enhance")
        }
        self._since_look = 0 if "detect" in costs else self._since_look
        self._since_enhance = 0 if "enhance" in costs else self._since_enhance
        return costs

    def _runs(self, rung: Rung, stage: str, delay_ms: float) -> bool:
        if get_share(rung, stage) == 0:
            return False
        if stage == "detect":
            return self._since_look >= max(rung.detect_every, 3)
        if stage != "enhance":
            return True
        if self._controller.must_skip_enhance(delay_ms):
            return False
        self.enhanced += 1  # shown, if only what was kept from the frame before
        return self._since_enhance >= 1 / rung.enhance_share


class _Seen:
    """What became of the frames."""

    def __init__(self) -> None:
        self.dropped = self.thinned = 0
        self.delays: list[float] = []
        self.changes: list[tuple[float, int]] = []

    def summarise(self, frames: int, enhanced: int) -> Outcome:
        minutes = frames * FRAME_MS / 60_000
        return Outcome(
            p95_ms=float(np.percentile(self.delays, 95)),
            p99_ms=float(np.percentile(self.delays, 99)),
            dropped_share=self.dropped / frames,
            thinned_share=self.thinned / frames,
            enhanced_share=enhanced / frames,
            flaps_per_min=count_flaps(self.changes) / minutes,
            changes=len(self.changes),
        )


def simulate(profile: Profile, controller: Controller, ring: int = 2) -> Outcome:
    """Return what a viewer and an operator would have seen."""
    waiting: deque[int] = deque()
    server = _Server(profile, controller)
    free_ms, arrived, frames = 0.0, 0, len(profile.speed)
    seen, is_sounding = _Seen(), False
    while arrived < frames or waiting:
        # Whatever has arrived by the time the server is free goes through the ring.
        while arrived < frames and (not waiting or arrived * FRAME_MS <= free_ms):
            waiting.append(arrived)
            arrived += 1
        while len(waiting) > ring:
            waiting.popleft()
            seen.dropped += 1
        if waiting[0] % 2 and LADDER[controller.rung].frame_share < 1:
            waiting.popleft()
            seen.thinned += 1
            continue
        arrival_ms = waiting.popleft() * FRAME_MS
        start_ms = max(free_ms, arrival_ms)
        index = round(arrival_ms / FRAME_MS)
        costs = server.work(index, start_ms - arrival_ms, is_sounding=is_sounding)
        free_ms = start_ms + sum(costs.values())
        seen.delays.append(free_ms - arrival_ms)
        before = controller.rung
        now_ns = int(free_ms * NS_PER_MS)
        decision = controller.note_frame(now_ns, costs, start_ms - arrival_ms)
        is_sounding = getattr(decision, "must_sound", False)
        if controller.rung != before:
            seen.changes.append((free_ms, controller.rung - before))
    return seen.summarise(frames, server.enhanced)


def count_flaps(changes: list[tuple[float, int]], within_ms: float = 10_000) -> int:
    """Return how often a change was taken back within ten seconds."""
    return sum(
        (one[1] > 0) != (other[1] > 0) and other[0] - one[0] <= within_ms
        for one, other in itertools.pairwise(changes)
    )
