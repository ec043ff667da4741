"""Windows of pictures -> which numbers were seen, when, how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.publish.luma.detect import LumaDetector, LumaFound, fold_at_scales

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livefuse.publish.mark_windows import MeanPicture

_NEAR: Final = (0.99, 1.0, 1.01)


class LumaSighting(NamedTuple):
    """A number that was read by the detector `which`: in how many windows, and best how.

    `first_s` and `last_s` are where the first of these windows began and the last one ended.
    """

    which: int
    best: LumaFound
    windows: int
    first_s: float
    last_s: float


class LumaReader:
    """Looks for the marks of some keys. One thread.

    A window takes up to a second for each key, less where the one before showed a mark.
    """

    def __init__(self, detectors: Sequence[LumaDetector]) -> None:
        self._detectors = detectors
        self._seen: dict[tuple[int, int], LumaSighting] = {}
        self._last: tuple[int, float] | None = None

    def look(self, mean: MeanPicture) -> None:
        """Look into a window; they come in order."""
        found = self._look_near(mean) or self._look_everywhere(mean)
        if found is not None:
            self._note(*found, mean)

    def list_sightings(self) -> list[LumaSighting]:
        """Return what was seen, most often first."""
        return sorted(self._seen.values(), key=lambda seen: (-seen.windows, -seen.best.z))

    def _look_near(self, mean: MeanPicture) -> tuple[int, LumaFound] | None:
        if self._last is None:
            return None
        which, scale = self._last
        folded = fold_at_scales(mean, [scale * factor for factor in _NEAR])
        found, _ = self._detectors[which].search(folded)
        return (which, found) if found is not None else None

    def _look_everywhere(self, mean: MeanPicture) -> tuple[int, LumaFound] | None:
        folded = list(fold_at_scales(mean))
        for which, detector in enumerate(self._detectors):
            if (found := detector.find_in(mean, folded)) is not None:
                return which, found
        return None

    def _note(self, which: int, found: LumaFound, mean: MeanPicture) -> None:
        self._last = which, found.scale
        seen = self._seen.get((which, found.number))
        if seen is None:
            seen = LumaSighting(which, found, 0, mean.first_s, mean.last_s)
        best = found if found.z > seen.best.z else seen.best
        self._seen[which, found.number] = seen._replace(
            best=best, windows=seen.windows + 1, last_s=mean.last_s
        )
