"""What each stage costs, by averages, and what a rung needs of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from livefuse.config import Rung

SPARED: Final = "_spared"
"""Ends the name of a stage's figure for when it did less than its whole work."""
_SMOOTHING: Final = 0.15
_OUTLIER: Final = 2.0  # a sample counts at most as twice the average ...
_BELIEVED: Final = 3  # ... but so many that exceed it in a row are how it is now
_DEVICE_STAGE: Final = "align"  # runs on all rungs but the last, so it tells how fast the device is
_LEAST_MS: Final = 0.1


@dataclass(slots=True)
class _Average:
    """What is thought of one stage."""

    ms: float
    samples: int = 1
    outliers: list[float] = field(default_factory=list)  # the latest samples, all too high

    def take(self, cost_ms: float) -> None:
        """Weigh one more sample in."""
        self.samples += 1
        most_ms = _OUTLIER * max(self.ms, _LEAST_MS)
        if cost_ms <= most_ms:
            self.outliers.clear()
        else:
            self.outliers.append(cost_ms)
            if len(self.outliers) >= _BELIEVED:
                self.ms = min(self.outliers)
                self.outliers.clear()
                return
        # The first samples count alike: a single slow one must not speak for all.
        self.ms += max(_SMOOTHING, 1 / self.samples) * (min(cost_ms, most_ms) - self.ms)


class Costs:
    """The averages of one job. One thread writes; `get_service_ms` may be asked by another."""

    def __init__(
        self, rungs: Sequence[Rung], part_of: Mapping[str, int], look_every: int = 3
    ) -> None:
        """See `Governor`."""
        self._rungs = rungs
        self._part_of = part_of
        self._look_every = look_every
        self._averages: dict[str, _Average] = {}

    def note(self, rung: int, stage: str, cost_ms: float) -> None:
        """Take what `stage` cost on a frame of `rung`."""
        average = self._averages.get(stage)
        if average is None:
            self.replace(stage, cost_ms)
            return
        before_ms = max(average.ms, _LEAST_MS)
        average.take(cost_ms)
        if stage == _DEVICE_STAGE:
            self._follow_device(rung, average.ms / before_ms)

    def replace(self, stage: str, cost_ms: float) -> None:
        """Take `cost_ms` for what `stage` costs, whatever was thought before."""
        self._averages[stage] = _Average(cost_ms)

    def keep_only(self, stages: Collection[str], part_of: Mapping[str, int]) -> None:
        """Forget all but `stages`, which share threads by `part_of` from now on."""
        self._part_of = part_of
        for stage in list(self._averages):
            if stage.removesuffix(SPARED) not in stages:
                del self._averages[stage]

    def forget(self, rung: int) -> None:
        """Forget what runs on `rung`: it is to be judged by what it measures from now on."""
        above = self._rungs[rung]
        for stage in list(self._averages):
            if get_share(above, stage, self._look_every) > 0.0:
                del self._averages[stage]

    def predict_ms(self, rung: int, assumed_ms: Mapping[str, float] | None = None) -> float:
        """Return what a frame needs on `rung` of the busiest thread, by the averages so far.

        `assumed_ms` says what some stages would cost, whatever they did.
        """
        costs_ms = {stage: average.ms for stage, average in self._averages.items()}
        needs: dict[int, float] = {}
        for stage, cost_ms in (costs_ms | dict(assumed_ms or {})).items():
            part = self._part_of.get(stage, 0)
            share = get_share(self._rungs[rung], stage, self._look_every)
            needs[part] = needs.get(part, 0.0) + cost_ms * share
        return max(needs.values(), default=0.0)

    def get_ms(self, stage: str) -> float:
        """Return the average of `stage`, 0 when it never ran."""
        average = self._averages.get(stage)
        return average.ms if average is not None else 0.0

    def get_service_ms(self) -> float:
        """Return how long a frame takes on which all stages do their whole work."""
        averages = self._averages.copy()
        return sum(average.ms for stage, average in averages.items() if not stage.endswith(SPARED))

    def _follow_device(self, rung: int, factor: float) -> None:
        """A stage that is off gets slower and faster with the device, as those that run do."""
        for stage, average in self._averages.items():
            if get_share(self._rungs[rung], stage) == 0.0:
                average.ms *= factor


def get_share(rung: Rung, stage: str, look_every: int = 3) -> float:
    """Return the part of the source's frames on which `stage` runs on `rung`."""
    if rung.cover_only:
        return 0.0
    looks = 1.0 / max(rung.detect_every, look_every)
    shares = {"detect": looks, "align": rung.align_share, "enhance": rung.enhance_share}
    share = shares.get(stage, 1.0)
    return share * rung.frame_share
