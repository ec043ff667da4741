"""What is hidden: noise patterns made of a key, and a number as their cyclic shifts.

Lengths are in px of a picture whose shorter side has `REFERENCE_PX`; pictures of other sizes take
the tile scaled with them.
"""

from __future__ import annotations

import zlib
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REFERENCE_PX: Final = 720
TILE_PX: Final = 256
SYMBOLS: Final = 5
_GRID_PX: Final = 8
SHIFTS: Final = TILE_PX // _GRID_PX
"""A symbol is one of SHIFTS x SHIFTS places, 8 px apart: 10 bits."""
_SYMBOL_BITS: Final = 10
_SYMBOL_MASK: Final = (1 << _SYMBOL_BITS) - 1
_CHECK_BITS: Final = 18
_CHECK_MASK: Final = (1 << _CHECK_BITS) - 1
_CHECK_SALT: Final = b"livefuse"

# Below a period of 10 px the encoder takes it away, above 32 px an eye sees it.
_LOW_CYCLES_PER_PX: Final = 1 / 32
_HIGH_CYCLES_PER_PX: Final = 1 / 10
_SLOPE: Final = 8
REFERENCE_WEIGHT: Final = 1.25  # it has to be found first, before any symbol
_CLIP: Final = 1.6


class Patterns:
    """The reference and the five that carry symbols, for one key. Immutable; any thread."""

    def __init__(self, key: int) -> None:
        self._noise = _create_noise(key)

    @cached_property
    def spectra(self) -> NDArray[np.complex128]:
        """(1 + SYMBOLS, TILE_PX, TILE_PX): the Fourier transforms of the patterns, unit RMS."""
        return np.fft.fft2(self._noise)

    def create_tile(self, number: int) -> NDArray[np.float32]:
        """Return the tile that carries `number` (32 bits): unit RMS, within about +-1.8."""
        total = REFERENCE_WEIGHT * self._noise[0]
        for pattern, symbol in zip(self._noise[1:], encode_number(number), strict=True):
            row, column = divmod(symbol, SHIFTS)
            total = total + np.roll(pattern, (row * _GRID_PX, column * _GRID_PX), (0, 1))
        total = np.clip(total / _get_rms(total), -_CLIP, _CLIP)
        return np.asarray(total / _get_rms(total), np.float32)


def encode_number(number: int) -> tuple[int, ...]:
    """Return the symbols of a 32-bit number and its checksum of 18 bits, the highest first."""
    word = (number << _CHECK_BITS) | _check(number)
    places = range((SYMBOLS - 1) * _SYMBOL_BITS, -1, -_SYMBOL_BITS)
    return tuple((word >> place) & _SYMBOL_MASK for place in places)


def decode_number(symbols: Sequence[int]) -> int | None:
    """Return the number that `symbols` stand for, or None when the checksum does not fit."""
    word = 0
    for symbol in symbols:
        word = (word << _SYMBOL_BITS) | symbol
    number = word >> _CHECK_BITS
    return number if word & _CHECK_MASK == _check(number) else None


def _check(number: int) -> int:
    return zlib.crc32(number.to_bytes(4, "big") + _CHECK_SALT) & _CHECK_MASK


@lru_cache(maxsize=4)  # the jobs of a worker share one, or two with that of replays
def _create_noise(key: int) -> NDArray[np.float64]:
    """Return patterns of random phase, flat between the two frequencies, in every direction."""
    white = np.random.default_rng(key).standard_normal((1 + SYMBOLS, TILE_PX, TILE_PX))
    spectra = np.fft.rfft2(white)
    cycles = np.hypot(np.fft.fftfreq(TILE_PX)[:, None], np.fft.rfftfreq(TILE_PX)[None, :])
    cycles[0, 0] = 1.0  # divided by; the mean is taken out below
    low = 1 / (1 + (_LOW_CYCLES_PER_PX / cycles) ** _SLOPE)
    band = low / (1 + (cycles / _HIGH_CYCLES_PER_PX) ** _SLOPE)
    band[0, 0] = 0.0
    noise = np.fft.irfft2(spectra / np.maximum(np.abs(spectra), 1e-12) * band)
    noise /= np.sqrt(np.mean(noise**2, axis=(1, 2), keepdims=True))
    noise.flags.writeable = False
    return np.asarray(noise)


def _get_rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
