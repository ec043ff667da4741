"""How a job is, in one word and a sentence."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.job.health import READY, Health, Signs, judge

WELL = Signs("running", input_age_ms=20, outputs=("live",))


@pytest.mark.parametrize(
    ("signs", "health", "reason"),
    [
        (WELL, "ONLINE", ""),
        (WELL._replace(outputs=("live", "stalled")), "ONLINE", "1 of 2 outputs not live"),
        (WELL._replace(outputs=("refused", "live")), "ONLINE", "1 of 2 outputs not live"),
        (WELL._replace(outputs=("refused", "refused")), "ERROR", "no output takes the stream"),
        (WELL._replace(outputs=()), "ONLINE", ""),
        (Signs("connecting", input_state="connecting"), "LOADING", "being opened"),
        (WELL._replace(is_loading=True), "LOADING", "networks are loading"),
        (
            WELL._replace(is_loading=True, has_renewed=True),
            "DEGRADED_INFERENCE",
            "made anew",
        ),
        (WELL._replace(input_state="stalled", input_age_ms=1500), "DEGRADED_INPUT", "1.5 s old"),
        (WELL._replace(input_state="lost", input_age_ms=9000), "DEGRADED_INPUT", "is lost"),
        (WELL._replace(input_state="connecting"), "DEGRADED_INPUT", "being dialled"),
        (WELL._replace(input_age_ms=1001), "DEGRADED_INPUT", "sends nothing"),
        (WELL._replace(input_age_ms=1500, frame_ms=1000.0), "ONLINE", ""),
        (WELL._replace(input_age_ms=None), "ONLINE", ""),
        (WELL._replace(failed_share=1.0), "DEGRADED_INFERENCE", "fail on 100 %"),
        (WELL._replace(failed_share=0.49), "ONLINE", ""),
        (
            WELL._replace(
                withheld="the consent was revoked: pictures are covered", failed_share=1.0
            ),
            "DEGRADED_INFERENCE",
            "the consent was revoked: pictures are covered",
        ),
        (WELL._replace(slow_work="swap"), "DEGRADED_INFERENCE", "swap does not come back"),
        (WELL._replace(is_holding=True), "DEGRADED_INFERENCE", "do not get through"),
        (WELL._replace(covers_all=True), "DEGRADED_INFERENCE", "overload"),
        (WELL._replace(state="failed", error="it broke"), "ERROR", "it broke"),
        (WELL._replace(state="stopped"), "STOPPED", ""),
        (WELL._replace(state="stopping", input_state="lost"), "STOPPED", ""),
        (WELL._replace(input_state="ended"), "ONLINE", ""),
    ],
)
def test_the_gravest_is_told(signs, health, reason):
    condition = judge(signs)
    assert condition.health == health
    assert reason in condition.reason
    assert bool(reason) == bool(condition.reason)


def test_outputs_that_are_being_opened_are_no_news():
    told = [
        judge(WELL._replace(outputs=outputs)).reason
        for outputs in (("live", "opening"), ("opening",), ("live", "connecting"), ("stalled",))
    ]
    assert told == ["", "", "1 of 2 outputs not live", "1 of 1 outputs not live"]


def test_a_job_that_loads_or_has_failed_is_not_ready():
    """C14: readiness is false until the networks have run once."""
    assert judge(WELL._replace(is_loading=True)).health not in READY
    assert judge(WELL._replace(state="failed")).health not in READY
    assert judge(WELL._replace(state="connecting")).health not in READY
    assert judge(WELL._replace(input_state="lost")).health in READY


@given(
    st.builds(
        Signs,
        state=st.sampled_from(["connecting", "running", "stopping", "stopped", "failed"]),
        is_loading=st.booleans(),
        input_state=st.sampled_from(["connecting", "live", "stalled", "lost", "ended"]),
        input_age_ms=st.none() | st.integers(0, 100_000),
        failed_share=st.floats(0, 1),
        covers_all=st.booleans(),
        is_holding=st.booleans(),
        has_renewed=st.booleans(),
        outputs=st.lists(st.sampled_from(["live", "refused", "stalled"])).map(tuple),
    )
)
def test_every_job_has_one_of_the_words_and_whatever_is_wrong_has_a_reason(signs):
    condition = judge(signs)
    assert condition.health in get_args(Health)
    if condition.health not in ("ONLINE", "STOPPED"):
        assert condition.reason
