"""A plan is its seed's, keeps its bounds, and meets every kind in the long run."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.faults import Faults
from tests.chaos.plan import KINDS, LEAD_S, TAIL_S, make_plan

OPERATIONS = ("detect", "blur")


@given(st.integers(0, 10**6), st.floats(40.0, 700.0))
def test_a_plan_keeps_its_bounds(seed, seconds):
    plan = make_plan(seed, seconds, OPERATIONS)
    assert plan == make_plan(seed, seconds, OPERATIONS)
    for fault in plan:
        kind = KINDS[fault.kind]
        assert fault.at_s >= LEAD_S
        assert fault.end_s <= seconds - TAIL_S
        assert kind.lasts_s[0] - 1e-3 <= fault.lasts_s <= kind.lasts_s[1] + 1e-3
        assert fault.details.get("where", "detect") in (*OPERATIONS, *kind.choices)
    assert all(b.at_s > a.end_s for a, b in itertools.pairwise(plan)), "two at once"


def test_ten_minutes_meet_every_kind_twice():
    for seed in range(5):
        met = [fault.kind for fault in make_plan(seed, 600.0, OPERATIONS)]
        assert min(met.count(name) for name in KINDS) >= 2
    assert make_plan(1, 600.0, OPERATIONS) != make_plan(2, 600.0, OPERATIONS)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_can_be_done(name):
    assert callable(getattr(Faults, f"_{name}"))
