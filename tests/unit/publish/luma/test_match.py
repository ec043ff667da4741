"""The mark as a whole against a folded tile: the right word first, and none where there is none."""

import numpy as np
import pytest

from livefuse.publish.luma import match
from livefuse.publish.luma.fold import FOLDED, STEP_PX
from livefuse.publish.luma.match import MIN_SCORE, Matcher
from livefuse.publish.luma.pattern import TILE_PX, Patterns

KEY, NUMBER = 77, 0x51DEBA11
MATCHER = Matcher(KEY)


def fold_tile(strength, seed=0, place=(0, 0), number=NUMBER):
    """A folded tile of white noise, with the mark in it at `place`, in px."""
    tile = np.roll(Patterns(KEY).create_tile(number), place, (0, 1))
    noise = np.random.default_rng(seed).standard_normal((FOLDED, FOLDED))
    return (strength * tile[::STEP_PX, ::STEP_PX] + noise).astype(np.float32)


def read(tile):
    return MATCHER.read(MATCHER.take_phases(tile))


@pytest.mark.parametrize("place", [(0, 0), (2, 1), (37, 101), (255, 128)])
def test_a_weak_mark_is_read_at_any_place(place):
    """At a strength where the reference alone says nothing, and single symbols are wrong."""
    readings = [read(fold_tile(0.22, seed, place)) for seed in range(12)]
    assert sum(reading is not None for reading in readings) >= 10
    assert {reading.number for reading in readings if reading is not None} == {NUMBER}
    assert min(reading.z for reading in readings if reading is not None) < 5.5
    assert all(reading.score >= MIN_SCORE for reading in readings if reading is not None)


def test_noise_says_nothing_and_seldom_comes_near():
    """What the docstring of match.py reckons."""
    tiles = [fold_tile(0, seed) for seed in range(100)]
    bounds = [MATCHER.get_bound(MATCHER.take_phases(tile)) for tile in tiles]
    assert all(read(tile) is None for tile in tiles[:10])
    assert max(bounds) < MIN_SCORE
    assert np.median(bounds) == pytest.approx(8.3, abs=0.4)


def test_the_score_is_in_standard_deviations_of_chance():
    scores = [
        MATCHER._correlate(MATCHER.take_phases(fold_tile(0, seed)), TILE_PX)[:, 40, 8]
        for seed in range(150)
    ]
    assert float(np.std(scores)) == pytest.approx(1.0, abs=0.1)


def test_the_bound_is_what_the_best_word_scores():
    """So that no scale is passed over whose number could be read."""
    for seed in range(8):
        tile = fold_tile(0.4, seed, place=(seed, 3 * seed))
        reading = read(tile)
        assert reading is not None
        assert MATCHER.get_bound(MATCHER.take_phases(tile)) > 0.85 * reading.score


def test_words_come_in_the_order_of_their_scores():
    planes = MATCHER._correlate(MATCHER.take_phases(fold_tile(0.5)), TILE_PX)
    words = list(match._list_words(planes, 0, 0))
    scores = [score for score, _ in words]
    assert len(words) == len({symbols for _, symbols in words}) > 100
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= MIN_SCORE


def test_the_number_of_words_is_bounded():
    """A mark so strong that many words score enough, none of which is one."""
    planes = MATCHER._correlate(MATCHER.take_phases(fold_tile(5)), TILE_PX)
    assert len(list(match._list_words(planes, 8, 8))) <= 256


def test_symbols_alone_are_no_mark():
    """A picture with the five patterns, but no reference, is nobody's."""
    spectra = Patterns(KEY).spectra
    tile = np.fft.ifft2(spectra[1:].sum(axis=0)).real[::STEP_PX, ::STEP_PX]
    assert read(tile.astype(np.float32)) is None


@pytest.mark.parametrize("value", [0, 7])
def test_a_flat_tile_holds_nothing(value):
    tile = np.full((FOLDED, FOLDED), value, np.float32)
    assert MATCHER.get_bound(MATCHER.take_phases(tile)) < MIN_SCORE
    assert read(tile) is None
