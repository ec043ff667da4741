"""The mean of some pictures -> the number they carry, at whatever scale, place and side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.publish.luma.fold import fold, join, whiten
from livefuse.publish.luma.match import MIN_SCORE, Matcher
from livefuse.publish.luma.pattern import REFERENCE_PX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.publish.mark_windows import MeanPicture

    Folded = Iterable[tuple[float, NDArray[np.float32]]]

SCALES: Final = tuple(0.45 * 1.01**i for i in range(153))
"""Which are tried, against a picture that was neither cut nor framed: a letterbox of 45 % .. what
is left of a quarter."""
_TRIED: Final = 10
_NEARER: Final = 4
_BETWEEN: Final = (0.995, 0.9975, 1.0025, 1.005)
_MIN_SIDE_PX: Final = 64  # less than a tile of a picture that was marked at all
_MAX_ASPECT: Final = 4
_SMALL: Final = 0.6  # the tiles of scales below are lost in the detail
_SMALL_PX: Final = 540  # the shorter side of what they are sought in
_LOSS: Final = 1.0  # of a score near the least one at most, where the place is between two


class LumaFound(NamedTuple):
    """A number that was read.

    `score` is how far the whole mark stands out of the noise, in its standard deviations, `z` the
    reference and `data_z` each symbol; `scale` is that of the tile against a picture that was
    neither cut nor framed.
    """

    number: int
    score: float
    z: float
    data_z: float
    scale: float
    is_mirrored: bool


class Candidate(NamedTuple):
    """At which scale and side the mark might be: what no word's score there exceeds by much."""

    score: float
    scale: float
    is_mirrored: bool
    phases: NDArray[np.complex64]


class LumaDetector:
    """Finds the mark of one key. Immutable after it was made (30 ms); any thread."""

    def __init__(self, key: int) -> None:
        self._matcher = Matcher(key)

    def find(self, mean: MeanPicture, scales: Iterable[float] = SCALES) -> LumaFound | None:
        """Return what is found in the mean of pictures of one stretch of time, or None.

        All scales take about 0.7 s and 8 MB.
        """
        return self.find_in(mean, fold_at_scales(mean, scales))

    def find_in(self, mean: MeanPicture, folded: Folded) -> LumaFound | None:
        """Return what is found in the tiles of `mean`, which were folded already."""
        found, best = self.search(folded)
        return found or self.look_nearer(mean, best)

    def look_nearer(self, mean: MeanPicture, best: Sequence[Candidate]) -> LumaFound | None:
        """Return what is found between the scales that were tried, where the mark may be."""
        near = {candidate.scale * factor for candidate in best[:_NEARER] for factor in _BETWEEN}
        return self.search(fold_at_scales(mean, sorted(near)))[0]

    def search(self, folded: Folded) -> tuple[LumaFound | None, list[Candidate]]:
        """Return what is found in folded tiles, each with its scale, and where it might be."""
        candidates: list[Candidate] = []
        for scale, tile in folded:
            for is_mirrored in (False, True):
                phases = self._matcher.take_phases(tile[:, ::-1] if is_mirrored else tile)
                score = self._matcher.get_bound(phases)
                candidates.append(Candidate(score, scale, is_mirrored, phases))
        best = sorted(candidates, key=lambda candidate: -candidate.score)[:_TRIED]
        tried = (self._read(candidate) for candidate in best)
        return next((reading for reading in tried if reading is not None), None), best

    def _read(self, candidate: Candidate) -> LumaFound | None:
        """Return the number at the candidate's scale, if there is one."""
        if candidate.score < MIN_SCORE - _LOSS:
            return None
        reading = self._matcher.read(candidate.phases)
        if reading is None:
            return None
        return LumaFound(*reading, candidate.scale, candidate.is_mirrored)


def fold_at_scales(
    mean: MeanPicture, scales: Iterable[float] = SCALES
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """Yield each scale with the folded tile there; none for a picture that is too small for any."""
    shape = mean.luma.shape
    if min(shape) < _MIN_SIDE_PX:
        return
    side = max(1, max(shape) / _MAX_ASPECT / min(shape)) / REFERENCE_PX
    fine: NDArray[np.float32] | None = None
    for scale in scales:
        detail = mean.detail
        if scale < _SMALL:
            detail = fine = join(*whiten(mean.luma, _SMALL_PX)) if fine is None else fine
        yield scale, fold(detail, scale * side * min(detail.shape))
