"""Enhance costs four times a frame's time for a while (C09), in virtual time: always the same."""

import pytest

from tests.overload import judge, run_in_virtual_time

BEGIN_S = 5.0


@pytest.mark.parametrize("load_s", [6.0, 15.0, 31.0])
def test_down_within_a_second_and_back_within_ten(load_s):
    """C09, and `overload` in scripts/bench: >= 95 % of the frames, one flap at most."""
    end_s = BEGIN_S + load_s
    seen = run_in_virtual_time(BEGIN_S, end_s, end_s + 12.0)
    figures = judge(seen, BEGIN_S, end_s)
    assert figures.down_s <= 1.0
    assert figures.back_s <= 10.0
    assert figures.fps_share >= 0.95
    assert figures.flaps <= 1
    assert seen.rungs[0][1:] == ("enhance_off", "deadline")
    assert [name for _, name, _ in seen.rungs[1:]] == ["enhance_half", "everything"]
    assert seen.statistics["rung_index"] == 0


def test_without_a_load_nothing_is_spared():
    seen = run_in_virtual_time(99.0, 99.0, 10.0)
    assert seen.rungs == []
    assert seen.statistics["dropped"] == {}
    assert seen.statistics["enhanced_share"] == pytest.approx(1.0, abs=0.01)
    assert len(seen.shown_s) == len(seen.arrived_s) == 300


def test_the_same_load_gives_the_same_decisions():
    one, other = (run_in_virtual_time(2.0, 5.0, 9.0) for _ in range(2))
    assert one == other


def test_a_live_job_drops_and_tells_and_one_for_every_frame_never_does():
    """C11: the same overload; a file's frames wait for one another instead."""
    live = run_in_virtual_time(0.0, 3.0, 6.0)
    whole = run_in_virtual_time(0.0, 3.0, 6.0, mode="every_frame")
    assert live.statistics["dropped"]["pipeline_busy"] > 0
    assert len(live.shown_s) == 180 - sum(live.statistics["dropped"].values())
    assert whole.statistics["dropped"] == {}
    assert len(whole.shown_s) == 180
    assert whole.rungs == []
