"""What presses, of what a machine says."""

import pytest

from livefuse.config import GovernorConfig
from livefuse.governor import PRESSURES
from livefuse.machine import Reading, Usage, judge

CALM = Reading(
    memory=Usage(50, 100),
    stalled_share=0.01,
    gpu_memory=Usage(10, 100),
    over_trip_c=-20.0,
    throttled=7,
    battery_share=None,
    frequency_khz=8_000,
)


DEFAULT = GovernorConfig()


def look(config=DEFAULT, most_khz=8_000, before=CALM, **changes):
    return judge(CALM._replace(**changes), before, most_khz, config)


def test_nothing_presses_on_a_calm_machine_nor_on_one_that_tells_nothing():
    assert look() == set()
    assert judge(Reading(), Reading(), 0, GovernorConfig()) == set()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"memory": Usage(93, 100)}, "memory_constrained"),
        ({"stalled_share": 0.3}, "memory_constrained"),
        ({"gpu_memory": Usage(96, 100)}, "gpu_memory"),
        ({"over_trip_c": 0.0}, "thermal"),
        ({"throttled": 8}, "thermal"),
        ({"battery_share": 0.19}, "low_power"),
        ({"frequency_khz": 4_000}, "low_power"),
    ],
)
def test_each_reason_has_its_sign(change, reason):
    assert look(**change) == {reason}
    assert reason in PRESSURES


def test_each_sign_can_be_switched_off():
    deaf = GovernorConfig(
        memory_share=1.0,
        memory_stall_share=1.0,
        gpu_memory_share=1.0,
        heed_heat=False,
        battery_share=0.0,
    )
    full = {
        "memory": Usage(100, 100), "stalled_share": 1.0, "gpu_memory": Usage(100, 100),
        "over_trip_c": 30.0, "throttled": 99, "battery_share": 0.01, "frequency_khz": 1,
    }  # fmt: skip
    assert look(deaf, **full) == set()
    assert look(**full) == set(PRESSURES)


def test_a_machine_that_is_capped_from_the_start_is_a_slow_one():
    assert look(most_khz=4_000, frequency_khz=4_000) == set()
    assert look(before=Reading(), throttled=99) == set()
