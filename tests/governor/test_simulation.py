"""The governor against other controllers on machines that no constant was tuned on (C01, C09)."""

import pytest

from tests.governor.__main__ import create_governor, measure
from tests.governor.controllers import CONTROLLERS

SEEDS = range(1000, 1012)


@pytest.fixture(scope="module")
def governed():
    return measure(create_governor, seeds=SEEDS)


def test_it_is_never_late(governed):
    assert governed.p99_ms <= 85
    assert governed.dropped_share <= 0.005


def test_it_does_not_flap(governed):
    assert governed.flaps_per_min <= 3


def test_it_shows_more_of_the_enhancement_than_hysteresis(governed):
    peer = measure(CONTROLLERS["hysteresis"], seeds=SEEDS)
    assert governed.enhanced_share > peer.enhanced_share
    assert governed.thinned_share < peer.thinned_share


def test_without_control_the_simulation_is_late():
    """What the bounds are worth: the same machines without a controller miss them."""
    none = measure(CONTROLLERS["none"], seeds=SEEDS)
    assert none.p99_ms > 85
    assert none.dropped_share > 0.01


def test_a_larger_ring_only_adds_delay(governed):
    larger = measure(create_governor, ring=8, seeds=SEEDS)
    assert larger.p99_ms >= governed.p99_ms
