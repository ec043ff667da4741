"""The mean of some pictures -> the number they carry, at whatever scale, place and side."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

import cv2
import numpy as np

from livefuse.publish.luma.fold import FOLDED, fold
from livefuse.publish.luma.pattern import (
    REFERENCE_PX,
    SHIFTS,
    SYMBOLS,
    TILE_PX,
    Patterns,
    decode_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from livefuse.publish.mark_windows import MeanPicture

    Spectrum = NDArray[np.complex128]
    Folded = Iterable[tuple[float, NDArray[np.float32]]]

SCALES: Final = tuple(0.45 * 1.01**i for i in range(153))
"""Which are tried, against a picture that was neither cut nor framed: a letterbox of 45 % .. what
is left of a quarter."""
_BAND: Final = 0.15  # of the strongest coefficient: where the patterns are at all
_MIN_Z: Final = 4.5
_MIN_DATA_Z: Final = 4.2
_SURE_Z: Final = 6.5  # unmarked pictures reach 5.9
_POWER: Final = 0.3
_TRIED: Final = 6
_NEARER: Final = 3
_BETWEEN: Final = (0.995, 0.9975, 1.0025, 1.005)
_REPLACED: Final = 2
_NEAR: Final = tuple(i * 0.25 for i in range(-3, 4))
_MIN_SIDE_PX: Final = 64  # less than a tile of a picture that was marked at all
_MAX_ASPECT: Final = 4
_SMALL: Final = 0.8


class LumaFound(NamedTuple):
    """A number that was read.

    `z` is how far the reference stands out of the noise, in its standard deviations; `scale` is
    that of the tile against a picture that was neither cut nor framed.
    """

    number: int
    z: float
    data_z: float
    scale: float
    is_mirrored: bool


class Candidate(NamedTuple):
    """Where the reference might be: how far it stands out, at which scale, where in the tile."""

    z: float
    scale: float
    is_mirrored: bool
    phases: Spectrum
    place: tuple[int, int]


class LumaDetector:
    """Finds the mark of one key. Immutable after it was made (30 ms); any thread."""

    def __init__(self, key: int) -> None:
        spectra = _keep_low(Patterns(key).spectra)
        strength = np.abs(spectra[0])
        self._band = strength > _BAND * strength.max()
        self._count = int(self._band.sum())
        self._phases = np.where(self._band, _take_phases(spectra), 0)
        along = np.fft.fftfreq(FOLDED)
        self._rows, self._columns = np.nonzero(self._band)
        self._waves = 2j * np.pi * along[self._rows], 2j * np.pi * along[self._columns]

    def find(self, mean: MeanPicture, scales: Iterable[float] = SCALES) -> LumaFound | None:
        """Return what is found in the mean of pictures of one stretch of time, or None.

        All scales take about half a second and 4 MB.
        """
        return self.find_in(mean, fold_at_scales(mean, scales))

    def find_in(self, mean: MeanPicture, folded: Folded) -> LumaFound | None:
        """Return what is found in the tiles of `mean`, which were folded already."""
        found, best = self.search(folded)
        return found or self.look_nearer(mean, best)

    def look_nearer(self, mean: MeanPicture, best: Sequence[Candidate]) -> LumaFound | None:
        """Return what is found between the scales that were tried, where the reference may be."""
        near = {candidate.scale * factor for candidate in best[:_NEARER] for factor in _BETWEEN}
        return self.search(fold_at_scales(mean, sorted(near)))[0]

    def search(self, folded: Folded) -> tuple[LumaFound | None, list[Candidate]]:
        """Return what is found in folded tiles, each with its scale, and where it might be."""
        candidates: list[Candidate] = []
        for scale, tile in folded:
            for is_mirrored in (False, True):
                spectrum = np.fft.fft2(tile[:, ::-1] if is_mirrored else tile)
                candidates.append(self._match(spectrum, scale, is_mirrored=is_mirrored))
        best = sorted(candidates, key=lambda candidate: -candidate.z)[:_TRIED]
        tried = (self._read(candidate) for candidate in best if candidate.z >= _MIN_Z)
        return next((reading for reading in tried if reading is not None), None), best

    def _match(self, spectrum: Spectrum, scale: float, *, is_mirrored: bool) -> Candidate:
        """Look for the reference by its phases (Kalker et al. 1999).

        Strong coefficients count a little more here than in a filter of phases only: after a
        coarse encode the weak ones are noise.
        """
        weights = np.where(self._band, np.abs(spectrum), 0) ** _POWER
        weights /= np.sqrt(np.mean(weights[self._band] ** 2)) or 1.0
        phases = _take_phases(spectrum) * weights
        peaks = self._correlate(phases, 0)
        row, column = divmod(int(peaks.argmax()), FOLDED)
        return Candidate(float(peaks[row, column]), scale, is_mirrored, phases, (row, column))

    def _correlate(self, phases: Spectrum, pattern: int) -> NDArray[np.float64]:
        """Return the correlation at each place, in standard deviations of what chance gives."""
        product = np.fft.ifft2(phases * self._phases[pattern].conj()).real
        return np.asarray(product * (FOLDED * FOLDED / np.sqrt(self._count)))

    def _read(self, candidate: Candidate) -> LumaFound | None:
        """Return the number at the candidate's place, if it is one."""
        row, column, z = self._refine(candidate)
        ramp = np.zeros_like(candidate.phases)
        waves = row * self._waves[0] + column * self._waves[1]
        ramp[self._rows, self._columns] = np.exp(waves)
        phases = candidate.phases * ramp
        each = FOLDED // SHIFTS
        peaks = [self._correlate(phases, 1 + i)[::each, ::each].ravel() for i in range(SYMBOLS)]
        for symbols in _list_readings(peaks, z):
            number = decode_number(symbols)
            data_z = float(np.mean([peak[s] for peak, s in zip(peaks, symbols, strict=True)]))
            if number is not None and data_z >= _MIN_DATA_Z:
                return LumaFound(number, z, data_z, candidate.scale, candidate.is_mirrored)
        return None

    def _refine(self, candidate: Candidate) -> tuple[float, float, float]:
        """Return the reference's place to a quarter of a sample, and its z there."""
        at = self._rows, self._columns
        product = candidate.phases[at] * self._phases[0][at].conj()
        rows = np.asarray(_NEAR) + candidate.place[0]
        columns = np.asarray(_NEAR) + candidate.place[1]
        down = np.exp(rows[:, None] * self._waves[0])
        across = np.exp(columns[:, None] * self._waves[1])
        peaks = (down * product) @ across.T
        row, column = divmod(int(peaks.real.argmax()), len(_NEAR))
        z = float(peaks.real[row, column] / np.sqrt(self._count))
        return float(rows[row]), float(columns[column]), z


def fold_at_scales(
    mean: MeanPicture, scales: Iterable[float] = SCALES
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """Yield each scale with the folded tile there; none for a picture that is too small for any.

    What is larger than needed is reduced first, so that time and memory are bounded.
    """
    if min(mean.luma.shape) < _MIN_SIDE_PX:
        return
    luma, side = _reduce(mean.luma)
    detail = mean.detail
    detail_side = side * min(detail.shape) / min(luma.shape)
    for scale in scales:
        if scale >= _SMALL:  # the small tiles of the others would be lost in it
            yield scale, fold(detail, scale * detail_side / REFERENCE_PX)
        else:
            yield scale, fold(luma, scale * side / REFERENCE_PX)


def _reduce(luma: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return the picture in a size that is enough, and what counts as its shorter side."""
    side = max(min(luma.shape), max(luma.shape) / _MAX_ASPECT)
    if side <= REFERENCE_PX:
        return luma, side
    factor = REFERENCE_PX / side
    reduced = cv2.resize(luma, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    return np.asarray(reduced, np.float32), REFERENCE_PX


def _list_readings(peaks: Sequence[NDArray[np.float64]], z: float) -> Iterator[tuple[int, ...]]:
    """Yield the symbols that stand out most; if the mark is surely there, then near misses too."""
    order = [np.argsort(peak)[-2:] for peak in peaks]
    best = tuple(int(pair[1]) for pair in order)
    yield best
    if z < _SURE_Z:
        return
    for count in range(1, _REPLACED + 1):
        for which in itertools.combinations(range(SYMBOLS), count):
            yield tuple(int(order[i][0]) if i in which else best[i] for i in range(SYMBOLS))


def _take_phases(spectrum: Spectrum) -> Spectrum:
    return np.asarray(spectrum / np.maximum(np.abs(spectrum), 1e-9))


def _keep_low(spectra: Spectrum) -> Spectrum:
    """Return the spectra of the patterns as if sampled every fourth px."""
    half = FOLDED // 2
    kept = np.r_[0:half, TILE_PX - half : TILE_PX]
    return np.asarray(spectra[:, kept[:, None], kept[None, :]])
