"""A folded tile -> how likely each place and each number is, all six patterns taken together.

The reference alone holds a quarter of the mark's energy. What is compared here is the whole of it:
the correlation with the tile that a number makes at a place, in standard deviations of what chance
gives, called its score.

    score(place, symbols) = (w z_0(place) + sum over i of z_i(place + shift of symbol i)) / norm

It is a matched filter for one word, so of unit variance where there is no mark. There are 306
scales and sides, 2,048 places that differ and 2^50 words, so without a mark

    306 * 2048 * 2^50 * Q(score)

of all that is compared scores more, with Q the tail of the normal distribution: one word in a
window from 9.46 on, 0.0001 from `MIN_SCORE`. Pictures are not quite that normal (a few of their
coefficients are strong), so a hundred times as many, 0.01, is what to reckon with. Only those words
are asked for their checksum, which 2^-18 of wrong ones pass: so a window without a mark is taken
for one with a mark once in 26 million. Measured (`scripts/bench mark_false`): the highest of 1,188
windows of 44 scenes scores 10.06.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from livefuse.publish.luma.fold import FOLDED
from livefuse.publish.luma.pattern import (
    REFERENCE_WEIGHT,
    SHIFTS,
    SYMBOLS,
    TILE_PX,
    Patterns,
    decode_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Spectrum = NDArray[np.complex64]
    Planes = NDArray[np.float32]

MIN_SCORE: Final = 10.4
_MIN_REFERENCE_Z: Final = 3.0  # a strong mark's symbols pass MIN_SCORE without it, at any place
_BAND: Final = 0.15  # of the strongest coefficient: where the patterns are at all
_POWER: Final = 0.65
_NORM: Final = float(np.sqrt(REFERENCE_WEIGHT**2 + SYMBOLS))
_PLACES: Final = 16
_LISTED: Final = 12  # the most likely shifts of each symbol
_WORDS: Final = 256  # for one place


class Reading(NamedTuple):
    """A number at a place of the tile, in its px, whose checksum fits."""

    number: int
    score: float
    z: float
    data_z: float


class Matcher:
    """Compares folded tiles with the patterns of one key. Immutable (30 ms to make); any thread."""

    def __init__(self, key: int) -> None:
        spectra = _keep_low(Patterns(key).spectra)
        strength = np.abs(spectra[0])
        self._band = strength > _BAND * strength.max()
        # Each column but the first and the last stands for two of the whole spectrum.
        self._twice = self._band * np.where(np.arange(self._band.shape[1]) % (FOLDED // 2), 2, 1)
        self._count = int(self._twice.sum())
        phases = spectra / np.maximum(np.abs(spectra), 1e-9)
        self._phases = np.where(self._band, phases.conj(), 0).astype(np.complex64)

    def take_phases(self, tile: Planes) -> Spectrum:
        """Return the tile's spectrum with all coefficients about as strong (Kalker et al. 1999).

        Strong ones count more here than in a filter of phases only: the places were made equal
        before, and after a coarse encode the weak ones are noise.
        """
        spectrum = np.fft.rfft2(tile)
        size = np.maximum(np.abs(spectrum), 1e-9)
        weighted = np.where(self._band, spectrum / size * size**_POWER, 0)
        rms = np.sqrt(np.sum(np.abs(weighted) ** 2 * self._twice) / self._count) or 1.0
        return np.asarray(weighted / rms, np.complex64)

    def get_bound(self, phases: Spectrum) -> float:
        """Return what no score at this scale exceeds by much, places being 2 px apart: 1 ms."""
        planes = self._correlate(phases, 2 * FOLDED)
        step = planes.shape[1] // SHIFTS
        best = planes.reshape(1 + SYMBOLS, SHIFTS, step, SHIFTS, step).max(axis=1).max(axis=2)
        return float(np.max(best[0] * REFERENCE_WEIGHT + best[1:].sum(axis=0)) / _NORM)

    def read(self, phases: Spectrum) -> Reading | None:
        """Return the most likely number whose checksum fits, if one scores enough: 5 ms."""
        planes = self._correlate(phases, TILE_PX)
        bounds = _bound_scores(planes)
        order = np.argsort(bounds, axis=None)[: -_PLACES - 1 : -1]
        for place in zip(*np.unravel_index(order, bounds.shape), strict=True):
            row, column = int(place[0]), int(place[1])
            z = float(planes[0, row, column])
            if bounds[row, column] < MIN_SCORE or z < _MIN_REFERENCE_Z:
                continue
            for score, symbols in _list_words(planes, row, column):
                if (number := decode_number(symbols)) is not None:
                    data_z = (score * _NORM - REFERENCE_WEIGHT * z) / SYMBOLS
                    return Reading(number, score, z, data_z)
        return None

    def _correlate(self, phases: Spectrum, side: int) -> Planes:
        """Return (1 + SYMBOLS, side, side): each pattern's z at each place of the tile."""
        product = self._phases * phases
        if side > FOLDED:
            wide = np.zeros((1 + SYMBOLS, side, side // 2 + 1), np.complex64)
            half = FOLDED // 2
            wide[:, :half, : half + 1] = product[:, :half]
            wide[:, -half:, : half + 1] = product[:, half:]
            product = wide
        planes = np.fft.irfft2(product, (side, side))
        return np.asarray(planes * (side * side / np.sqrt(self._count)), np.float32)


def _bound_scores(planes: Planes) -> Planes:
    """Return for each place the score of the best word there, whatever its checksum.

    The shifts of symbols lie on a grid, so all places of one place of that grid share their best.
    """
    side = planes.shape[1]
    step = side // SHIFTS
    grids = planes.reshape(1 + SYMBOLS, SHIFTS, step, SHIFTS, step)
    best = grids[1:].max(axis=1).max(axis=2).sum(axis=0)
    scores = (grids[0] * REFERENCE_WEIGHT + best[None, :, None, :]) / _NORM
    return np.asarray(scores.reshape(side, side), np.float32)


def _list_words(planes: Planes, row: int, column: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the words at a place, the most likely first, as long as they score enough."""
    rolled = np.roll(planes[1:], (-row, -column), (1, 2))
    step = planes.shape[1] // SHIFTS
    peaks = rolled[:, ::step, ::step].reshape(SYMBOLS, -1)
    listed = np.argsort(peaks, axis=1)[:, : -_LISTED - 1 : -1]
    values = np.take_along_axis(peaks, listed, axis=1).astype(float)
    base = REFERENCE_WEIGHT * float(planes[0, row, column])

    def score(ranks: tuple[int, ...]) -> float:
        total = base + sum(float(values[i, rank]) for i, rank in enumerate(ranks))
        return total / _NORM

    first: tuple[int, ...] = (0,) * SYMBOLS
    heap, known = [(-score(first), first)], {first}
    for _ in range(_WORDS):
        if not heap or -heap[0][0] < MIN_SCORE:
            return
        negative, ranks = heapq.heappop(heap)
        yield -negative, tuple(int(listed[i, rank]) for i, rank in enumerate(ranks))
        for i, rank in enumerate(ranks):
            after = (*ranks[:i], rank + 1, *ranks[i + 1 :])
            if rank + 1 < _LISTED and after not in known:
                known.add(after)
                heapq.heappush(heap, (-score(after), after))


def _keep_low(spectra: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the half spectra of the patterns as if sampled every fourth px."""
    half = FOLDED // 2
    rows = np.r_[0:half, TILE_PX - half : TILE_PX]
    return np.asarray(spectra[:, rows[:, None], np.arange(half + 1)[None, :]])
