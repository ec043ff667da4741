"""What a network says is checked: garbage looks like "no face" otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.runtime.guard import ANYTHING, EXPECTATIONS, Expectation, find_fault
from livefuse.runtime.registry import Model

PICTURE = Expectation(limit=100.0, may_be_flat=False)


def picture(value=None, side=16):
    if value is not None:
        return np.full((1, 3, side, side), value, np.float32)
    return np.random.default_rng(0).normal(0, 1, (1, 3, side, side)).astype(np.float32)


def test_sound_numbers_have_no_fault():
    assert find_fault([picture(), np.ones((1, 1), np.float32)], {"x": picture()}, PICTURE) == ""


@given(
    size=st.integers(1, 5000),
    place=st.floats(0, 0.999),
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_one_bad_number_of_a_small_output_is_found(size, place, bad):
    values = np.ones(size, np.float32)
    values[int(place * size)] = bad
    assert find_fault([np.ones(3, np.float32), values], {}, ANYTHING) == "not finite"


def test_a_bad_row_of_a_large_output_is_found():
    values = np.zeros((1, 3, 1024, 1024), np.float32)
    values[0, 1, 500:504] = np.nan
    assert find_fault([values], {}, ANYTHING) == "not finite"


@pytest.mark.parametrize("value", [-101.0, 1e20])
def test_numbers_out_of_range_are_found(value):
    values = picture()
    values[0, 0, 3, 3] = value
    assert find_fault([values], {"x": picture()}, PICTURE).startswith("out of range")
    assert find_fault([values], {"x": picture()}, ANYTHING) == ""


def test_the_same_value_everywhere_is_a_fault_unless_the_input_is_flat():
    assert find_fault([picture(0.0)], {"x": picture()}, PICTURE) == "the same value everywhere"
    assert find_fault([picture(0.0)], {"x": picture(0.5)}, PICTURE) == ""
    assert find_fault([picture(0.0)], {"x": picture()}, Expectation()) == ""


def test_one_output_that_is_not_flat_is_enough():
    assert find_fault([picture(0.0), picture()], {"x": picture()}, PICTURE) == ""
    assert find_fault([picture(0.0), np.ones(3, np.float32)], {"x": picture()}, PICTURE) != ""
    assert find_fault([np.ones(63, np.float32)], {"x": picture()}, PICTURE) == ""


def test_a_detector_that_says_zero_everywhere_is_refused():
    """It would look like a picture without a face, and bare every one."""
    outputs = [np.zeros((1, 1, 32, 56), np.float32), np.zeros((1, 10, 32, 56), np.float32)]
    assert find_fault(outputs, {"x": picture()}, EXPECTATIONS["detect"]) != ""
    assert find_fault(outputs, {"x": picture()}, EXPECTATIONS["background"]) == ""


def test_whole_numbers_and_empty_outputs_pass():
    flat, empty = np.zeros((1, 3, 16, 16), np.int64), np.empty((0, 4), np.float32)
    assert find_fault([flat, empty], {"x": picture()}, PICTURE) == ""


def test_every_task_of_the_manifest_has_its_expectation():
    import typing

    from livefuse.runtime.registry import Task

    assert "task" in Model.__struct_fields__
    assert set(EXPECTATIONS) == set(typing.get_args(Task))
