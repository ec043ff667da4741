"""The code of the invisible mark: numbers come back, others do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.publish.luma.pattern import (
    SHIFTS,
    SYMBOLS,
    TILE_PX,
    Patterns,
    decode_number,
    encode_number,
)

NUMBERS = st.integers(0, 2**32 - 1)


@given(NUMBERS)
def test_a_number_comes_back(number):
    symbols = encode_number(number)
    assert len(symbols) == SYMBOLS
    assert all(0 <= symbol < SHIFTS * SHIFTS for symbol in symbols)
    assert decode_number(symbols) == number


@given(NUMBERS, st.integers(0, SYMBOLS - 1), st.integers(1, SHIFTS * SHIFTS - 1))
@settings(max_examples=300)
def test_a_wrong_symbol_gives_no_other_number(number, place, change):
    """18 bits of checksum: one in 262,144 would pass."""
    symbols = list(encode_number(number))
    symbols[place] = (symbols[place] + change) % (SHIFTS * SHIFTS)
    assert decode_number(symbols) in (None, number)
    assert decode_number(symbols) is None


def test_known_symbols_stay_as_they_are():
    """What was marked last year is to be read next year."""
    assert encode_number(0xDEADBEEF) == (890, 731, 955, 973, 455)


def test_a_tile_is_of_unit_strength_and_bounded():
    tile = Patterns(1).create_tile(0)
    assert tile.shape == (TILE_PX, TILE_PX)
    assert np.sqrt(np.mean(tile**2)) == pytest.approx(1.0, abs=1e-4)
    assert abs(float(tile.mean())) < 0.01
    assert 1.6 < float(np.abs(tile).max()) < 1.9


def test_a_tile_has_no_flat_light_and_no_fine_grain():
    """Nothing an eye adds up over a large place, nothing an encoder takes away first."""
    power = np.abs(np.fft.fft2(Patterns(1).create_tile(7))) ** 2
    cycles = np.hypot(*np.meshgrid(*[np.fft.fftfreq(TILE_PX)] * 2))
    inside = (cycles > 1 / 40) & (cycles < 1 / 8)
    assert power[inside].sum() > 0.9 * power.sum()


def test_other_keys_and_numbers_give_other_tiles():
    one = Patterns(1).create_tile(5)
    assert np.array_equal(one, Patterns(1).create_tile(5))
    assert float(np.mean(one * Patterns(1).create_tile(6))) < 0.75
    assert abs(float(np.mean(one * Patterns(2).create_tile(5)))) < 0.1
