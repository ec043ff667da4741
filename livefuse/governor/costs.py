"""What each stage costs, by averages, and what a rung needs of them."""

from __future__ import annotations

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


class Costs:
    """The averages of one job. One thread writes; `get_service_ms` may be asked by another."""

    def __init__(
        self, rungs: Sequence[Rung], part_of: Mapping[str, int], look_every: int = 3
    ) -> None:
        """See `Governor`."""
        self._rungs = rungs
        self._part_of = part_of
        self._look_every = look_every
        self._averages_ms: dict[str, float] = {}
        self._samples: dict[str, int] = {}
        self._outliers: dict[str, list[float]] = {}  # the latest samples, all too high

    def note(self, rung: int, stage: str, cost_ms: float) -> None:
        """Take what `stage` cost on a frame of `rung`."""
        known = self._averages_ms.get(stage)
        count = self._samples[stage] = self._samples.get(stage, 0) + 1
        if known is None:
            self._averages_ms[stage] = cost_ms
            return
        new = self._weigh(stage, known, cost_ms, count)
        if stage == _DEVICE_STAGE:
            self._follow_device(rung, new / max(known, _LEAST_MS))
        self._averages_ms[stage] = new

    def _weigh(self, stage: str, known: float, cost_ms: float, count: int) -> float:
        """Return the new average."""
        most_ms = _OUTLIER * max(known, _LEAST_MS)
        row = self._outliers.setdefault(stage, [])
        if cost_ms <= most_ms:
            row.clear()
        else:
            row.append(cost_ms)
            if len(row) >= _BELIEVED:
                least_ms = min(row)
                row.clear()
                return least_ms
        # The first samples count alike: a single slow one must not speak for all.
        return known + max(_SMOOTHING, 1 / count) * (min(cost_ms, most_ms) - known)

    def replace(self, stage: str, cost_ms: float) -> None:
        """Take `cost_ms` for what `stage` costs, whatever was thought before."""
        self._averages_ms[stage], self._samples[stage] = cost_ms, 1

    def keep_only(self, stages: Collection[str], part_of: Mapping[str, int]) -> None:
        """Forget all but `stages`, which share threads by `part_of` from now on."""
        self._part_of = part_of
        for stage in list(self._averages_ms):
            if stage.removesuffix(SPARED) not in stages:
                del self._averages_ms[stage], self._samples[stage]

    def forget(self, rung: int) -> None:
        """Forget what runs on `rung`: it is to be judged by what it measures from now on."""
        above = self._rungs[rung]
        for stage in list(self._averages_ms):
            if get_share(above, stage, self._look_every) > 0.0:
                del self._averages_ms[stage], self._samples[stage]

    def predict_ms(self, rung: int) -> float:
        """Return what a frame needs on `rung` of the busiest thread, by the averages so far."""
        needs: dict[int, float] = {}
        for stage, cost in self._averages_ms.items():
            part = self._part_of.get(stage, 0)
            share = get_share(self._rungs[rung], stage, self._look_every)
            needs[part] = needs.get(part, 0.0) + cost * share
        return max(needs.values(), default=0.0)

    def predict_with_ms(self, rung: int, stage: str, cost_ms: float) -> float:
        """Return what a frame would need on `rung` if `stage` cost so much."""
        known = self._averages_ms.get(stage)
        self._averages_ms[stage] = cost_ms
        need = self.predict_ms(rung)
        if known is None:
            del self._averages_ms[stage]
        else:
            self._averages_ms[stage] = known
        return need

    def get_ms(self, stage: str) -> float:
        """Return the average of `stage`, 0 when it never ran."""
        return self._averages_ms.get(stage, 0.0)

    def get_service_ms(self) -> float:
        """Return how long a frame takes on which all stages do their whole work."""
        averages = self._averages_ms.copy()
        return sum(cost for stage, cost in averages.items() if not stage.endswith(SPARED))

    def _follow_device(self, rung: int, factor: float) -> None:
        """A stage that is off gets slower and faster with the device, as those that run do."""
        for stage, cost in self._averages_ms.items():
            if get_share(self._rungs[rung], stage) == 0.0:
                self._averages_ms[stage] = cost * factor


def get_share(rung: Rung, stage: str, look_every: int = 3) -> float:
    """Return the part of the source's frames on which `stage` runs on `rung`."""
    if rung.cover_only:
        return 0.0
    looks = 1.0 / max(rung.detect_every, look_every)
    shares = {"detect": looks, "align": rung.align_share, "enhance": rung.enhance_share}
    share = shares.get(stage, 1.0)
    return share * rung.frame_share
