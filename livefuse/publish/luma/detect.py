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

    Spectrum = NDArray[np.complex128]

SCALES: Final = tuple(0.45 * 1.01**i for i in range(153))
"""Which are tried, against a picture that was neither cut nor framed: a letterbox of 45 % .. what
is left of a quarter."""
_BAND: Final = 0.15  # of the strongest coefficient: where the patterns are at all
_MIN_Z: Final = 4.5
_MIN_DATA_Z: Final = 4.2
_SURE_Z: Final = 6.5  # unmarked pictures reach 5.9
_TRIED: Final = 6
_REPLACED: Final = 2
_NEAR: Final = tuple(i * 0.25 for i in range(-3, 4))
_MIN_SIDE_PX: Final = 64  # less than a tile of a picture that was marked at all
_MAX_ASPECT: Final = 4
_HALVED: Final = 0.85


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


class _Candidate(NamedTuple):
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

    def find(
        self, luma: NDArray[np.floating], scales: Iterable[float] = SCALES
    ) -> LumaFound | None:
        """Return what is found in `luma`, the mean of pictures of one place in time, or None.

        All scales take about half a second and 4 MB.
        """
        return self.find_in(fold_at_scales(luma, scales))

    def find_in(self, folded: Iterable[tuple[float, NDArray[np.float32]]]) -> LumaFound | None:
        """Return what is found in tiles that were folded already, each with its scale."""
        return self.search(folded)[0]

    def search(
        self, folded: Iterable[tuple[float, NDArray[np.float32]]]
    ) -> tuple[LumaFound | None, float]:
        """Return what is found, and the highest z of the reference, found or not."""
        candidates: list[_Candidate] = []
        for scale, tile in folded:
            for is_mirrored in (False, True):
                spectrum = np.fft.fft2(tile[:, ::-1] if is_mirrored else tile)
                candidates.append(self._match(spectrum, scale, is_mirrored=is_mirrored))
        best = sorted(candidates, key=lambda candidate: -candidate.z)[:_TRIED]
        tried = (self._read(candidate) for candidate in best if candidate.z >= _MIN_Z)
        found = next((reading for reading in tried if reading is not None), None)
        return found, best[0].z if best else 0.0

    def _match(self, spectrum: Spectrum, scale: float, *, is_mirrored: bool) -> _Candidate:
        """Look for the reference: symmetrical phase-only matched filter (Kalker et al. 1999)."""
        phases = np.where(self._band, _take_phases(spectrum), 0)
        peaks = self._correlate(phases, 0)
        row, column = divmod(int(peaks.argmax()), FOLDED)
        return _Candidate(float(peaks[row, column]), scale, is_mirrored, phases, (row, column))

    def _correlate(self, phases: Spectrum, pattern: int) -> NDArray[np.float64]:
        """Return the correlation at each place, in standard deviations of what chance gives."""
        product = np.fft.ifft2(phases * self._phases[pattern].conj()).real
        return np.asarray(product * (FOLDED * FOLDED / np.sqrt(self._count)))

    def _read(self, candidate: _Candidate) -> LumaFound | None:
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

    def _refine(self, candidate: _Candidate) -> tuple[float, float, float]:
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
    luma: NDArray[np.floating], scales: Iterable[float] = SCALES
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """Yield each scale with the folded tile there; none for a picture that is too small for any.

    What is larger than needed is reduced first, so that time and memory are bounded.
    """
    if min(luma.shape) < _MIN_SIDE_PX:
        return
    picture = np.asarray(luma, np.float32)
    side = max(min(picture.shape), max(picture.shape) / _MAX_ASPECT)
    if side > REFERENCE_PX:
        factor = REFERENCE_PX / side
        reduced = cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
        picture, side = np.asarray(reduced, np.float32), REFERENCE_PX
    factor = side / REFERENCE_PX
    half = cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    for scale in scales:
        if scale * factor >= _HALVED:  # no detail is lost, and it is four times as fast
            yield scale, fold(np.asarray(half, np.float32), scale * factor / 2)
        else:
            yield scale, fold(picture, scale * factor)


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
