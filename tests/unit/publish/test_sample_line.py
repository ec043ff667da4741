"""Samples at their places: half an hour of a clock that drifts, jitter, holes (C51, C53)."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from livefuse.publish.sample_line import UNIT_SAMPLES, SampleLine

RATE = 8000
PIECE = RATE // 50


def find_click(units, threshold=0.5):
    """Return at which place (samples) each click comes out."""
    places = []
    for start, samples in units:
        places += [start + int(n) for n in np.flatnonzero(samples[0] > threshold)]
    return places


@pytest.mark.parametrize("drift", [-100e-6, 200e-6])
def test_after_half_an_hour_a_clap_is_where_it_belongs(drift):
    """(C51) A microphone's clock runs by `drift` apart from the stamps', which jitter by 10 ms."""
    line = SampleLine(RATE, 1)
    rng = random.Random(7)
    silence, clap = np.zeros((2, 1, RATE // 25), np.float32)
    clap[0, 0] = 1.0
    worst_ms, wanted, last = 0.0, 0.0, -1
    for index in range(30 * 60 * 25):
        true_s = index / 25 * (1 + drift)
        stamp = round((true_s + rng.uniform(-0.01, 0.01)) * RATE)
        is_clap = index % 250 == 0
        units = line.place(clap if is_clap else silence, max(stamp, 0))
        assert all(start > last - UNIT_SAMPLES for start, _ in units)
        last = units[-1].start if units else last
        if is_clap:
            wanted = true_s * RATE
        for place in find_click(units):
            worst_ms = max(worst_ms, abs(place - wanted) * 1000 / RATE)
    assert worst_ms <= 20, "half of what is allowed is the pictures'"


def test_jitter_alone_moves_nothing():
    line = SampleLine(RATE, 1)
    rng = random.Random(3)
    units = []
    for index in range(5000):
        at = index * PIECE + rng.randint(-PIECE // 4, PIECE // 4)
        units += line.place(np.zeros((1, PIECE), np.float32), max(at, 0))
    assert {b.start - a.start for a, b in itertools.pairwise(units)} == {UNIT_SAMPLES}


@pytest.mark.parametrize("missing", [1, 3, 10, 50, 99])
def test_what_is_lost_is_silence_and_the_length_stays(missing):
    """(C53) Up to two seconds; what comes after stands within 20 ms of its place."""
    line = SampleLine(RATE, 1)
    piece = np.ones((1, PIECE), np.float32)
    units = []
    for index in range(300):
        if 100 <= index < 100 + missing:
            continue
        units += line.place(piece, index * PIECE)
    units += line.flush()
    whole = np.concatenate([samples[0] for _, samples in units])
    end = int(np.flatnonzero(whole)[-1]) + 1
    assert abs(end - 300 * PIECE) <= 0.020 * RATE
    loud = int(whole.sum())
    assert loud == (300 - missing) * PIECE


def test_a_long_absence_is_left_and_the_place_afterwards_is_right():
    line = SampleLine(RATE, 1)
    piece = np.ones((1, PIECE), np.float32)
    units = line.place(piece, 0) + line.place(piece, 60 * RATE) + line.flush()
    assert [start for start, _ in units] == [0, 60 * RATE]


def test_what_comes_twice_is_cut():
    """But for what a stamp may jitter by."""
    line = SampleLine(RATE, 1)
    units = []
    for index in [*range(20), *range(20), *range(20, 30)]:
        units += line.place(np.ones((1, PIECE), np.float32), index * PIECE)
    units += line.flush()
    heard = int(sum(samples.sum() for _, samples in units))
    assert 30 * PIECE <= heard <= 32 * PIECE
