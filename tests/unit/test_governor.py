"""The ladder: down when it must, up when it may, and the same every time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.config import LADDER, GovernorConfig
from livefuse.governor import PRESSURES, Decision, Governor, get_share
from livefuse.governor.costs import Costs

FRAME_MS = 1000 / 30
FRAME_NS = int(FRAME_MS * NS_PER_MS)
LIGHT = {"detect": 4.0, "align": 4.0, "swap": 5.0, "enhance": 5.0}
HEAVY = {"detect": 9.0, "align": 6.0, "swap": 10.0, "enhance": 130.0}  # 4 x the budget


class Run:
    """Feeds a governor frame after frame; what a rung leaves out costs nothing."""

    def __init__(self):
        self.governor = Governor(GovernorConfig(), FRAME_MS)
        self.now_ns = 0
        self.decisions = []
        self.must_sound = False
        self.sounded_s: list[float] = []

    def feed(self, costs, seconds, delay_ms=0.0, pressing=()):
        for _ in range(round(30 * seconds)):
            rung = LADDER[self.governor.rung]
            paid = {stage: ms for stage, ms in costs.items() if get_share(rung, stage) > 0}
            self.now_ns += FRAME_NS
            if self.must_sound:
                paid["enhance"] = costs["enhance"]
                self.sounded_s.append(self.now_ns / NS_PER_S)
            by_time = self.governor.note_frame(self.now_ns, paid, delay_ms)
            self.must_sound = by_time.must_sound
            for decision in (by_time, self.governor.note_pressure(self.now_ns, pressing)):
                if decision.reason:
                    self.decisions.append((self.now_ns / NS_PER_S, decision))
        return self.governor.rung


def test_what_fits_stays():
    run = Run()
    assert run.feed(LIGHT, 30) == 0
    assert run.decisions == []


def test_down_within_a_second_straight_to_the_rung_that_fits():
    """C09: enhance costs four times the budget: it goes, nothing else does."""
    run = Run()
    run.feed(LIGHT, 5)
    begin_s = run.now_ns / NS_PER_S
    run.feed(HEAVY, 1)
    assert LADDER[run.governor.rung].name == "enhance_off"
    at_s, decision = run.decisions[0]
    assert at_s - begin_s < 1.0
    assert decision == Decision(2, "deadline", is_downgrade=True)


def test_back_within_ten_seconds_of_the_loads_end():
    run = Run()
    run.feed(LIGHT, 5)
    slow = {stage: 3 * ms for stage, ms in LIGHT.items()}
    run.feed(slow, 5)
    assert run.governor.rung > 0
    run.feed(LIGHT, 10)
    assert run.governor.rung == 0


def test_an_upgrade_that_does_not_hold_makes_the_next_one_wait_longer():
    run = Run()
    run.feed(LIGHT, 2)
    run.feed(HEAVY, 120)
    waits = [
        later[0] - earlier[0]
        for earlier, later in zip(run.decisions, run.decisions[1:], strict=False)
        if earlier[1].is_downgrade and not later[1].is_downgrade
    ]
    assert waits == sorted(waits)
    assert len(run.decisions) <= 30


def test_a_standing_queue_goes_down_one_rung_whatever_is_predicted():
    run = Run()
    run.feed(LIGHT, 1)
    run.feed(LIGHT, 0.5, delay_ms=60.0)
    assert run.governor.rung >= 1
    assert run.decisions[0][1] == Decision(1, "queue_delay", is_downgrade=True)


def test_one_late_frame_is_no_standing_queue():
    run = Run()
    run.feed(LIGHT, 1)
    run.feed(LIGHT, 0.1, delay_ms=60.0)
    run.feed(LIGHT, 1)
    assert run.decisions == []


def test_a_single_burst_changes_nothing():
    run = Run()
    run.feed(LIGHT, 2)
    run.feed(HEAVY, 1 / 30)
    run.feed(LIGHT, 5)
    assert run.governor.rung == 0


def test_the_last_rung_is_the_last():
    run = Run()
    hopeless = dict.fromkeys(LIGHT, 500.0)
    assert run.feed(hopeless, 60, delay_ms=500.0) == len(LADDER) - 1


def test_a_frame_that_would_be_late_goes_without_enhance():
    run = Run()
    run.feed(LIGHT, 1)
    assert not run.governor.must_skip_enhance(10.0)
    assert run.governor.must_skip_enhance(60.0)


def test_what_is_off_gets_slower_with_the_device():
    run = Run()
    run.feed(HEAVY, 3)
    before = run.governor.predict_ms(0)
    run.feed({stage: 2 * ms for stage, ms in HEAVY.items()}, 3)
    assert run.governor.predict_ms(0) > 1.5 * before


@pytest.mark.parametrize("name", [rung.name for rung in LADDER])
def test_each_rung_needs_no_more_than_the_one_above(name):
    index = [rung.name for rung in LADDER].index(name)
    governor = Governor(GovernorConfig(), FRAME_MS)
    governor.note_frame(0, LIGHT, 0.0)
    governor.note_frame(NS_PER_S, LIGHT, 0.0)
    assert index == 0 or governor.predict_ms(index) <= governor.predict_ms(index - 1)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.floats(0, 200), st.floats(0, 200), st.floats(0, 300)), min_size=1, max_size=300
    )
)
def test_the_same_calls_give_the_same_decisions(frames):
    one, other = (Governor(GovernorConfig(), FRAME_MS) for _ in range(2))
    for index, (align, enhance, delay) in enumerate(frames):
        costs = {"align": align, "enhance": enhance}
        decision = one.note_frame(index * FRAME_NS, costs, delay)
        assert decision == other.note_frame(index * FRAME_NS, costs, delay)
        assert 0 <= decision.rung < len(LADDER)
    assert one.statistics() == other.statistics()


def test_where_nothing_is_measured_a_try_is_made():
    """On the last rung no step runs: it must come back without costs to judge by."""
    run = Run()
    run.feed(dict.fromkeys(LIGHT, 500.0), 5, delay_ms=500.0)
    while run.governor.rung < len(LADDER) - 1:
        run.feed(dict.fromkeys(LIGHT, 500.0), 1 / 30, delay_ms=500.0)
        assert run.now_ns < 20 * NS_PER_S
    run.feed(LIGHT, 60)
    assert run.governor.rung == 0


def test_slow_first_frames_change_nothing():
    run = Run()
    run.feed(dict.fromkeys(LIGHT, 200.0), 0.2)
    run.feed(LIGHT, 5)
    assert run.decisions == []


def test_work_that_overlaps_needs_what_its_busiest_thread_needs():
    parts = {"detect": 0, "align": 0, "swap": 1, "enhance": 1}
    one = Governor(GovernorConfig(), FRAME_MS)
    two = Governor(GovernorConfig(), FRAME_MS, parts)
    for governor in (one, two):
        governor.note_frame(0, LIGHT, 0.0)
        governor.note_frame(NS_PER_S, LIGHT, 0.0)
    assert two.predict_ms(0) == pytest.approx(10.0)
    assert one.predict_ms(0) > two.predict_ms(0)


def test_what_a_viewer_sees_at_once_is_not_taken_for_a_prediction():
    """Half the frames are worse than a few late ones: only a queue that stands calls for it."""
    run = Run()
    run.feed(LIGHT, 2)
    slow = {stage: 8 * ms for stage, ms in LIGHT.items()}
    run.feed(slow, 5)
    assert LADDER[run.governor.rung].name == "align_half"
    run.feed(slow, 0.5, delay_ms=60.0)
    assert LADDER[run.governor.rung].name == "frames_half"
    assert run.decisions[-1][1].reason == "queue_delay"


@pytest.mark.parametrize("reason", PRESSURES)
def test_pressure_costs_a_rung_at_once_and_another_each_five_seconds(reason):
    run = Run()
    run.feed(LIGHT, 2)
    run.feed(LIGHT, 11, pressing={reason})
    assert [d for _, d in run.decisions] == [
        Decision(rung, reason, is_downgrade=True) for rung in (1, 2, 3)
    ]
    assert [round(at_s - 2) for at_s, _ in run.decisions] == [0, 5, 10]


def test_pressure_never_takes_what_a_viewer_sees_at_once():
    run = Run()
    run.feed(LIGHT, 60, pressing={"thermal"})
    assert LADDER[run.governor.rung].name == "align_half"


def test_the_most_urgent_pressure_is_named():
    run = Run()
    run.feed(LIGHT, 1, pressing={"low_power", "thermal", "memory_constrained"})
    assert run.decisions[0][1].reason == "memory_constrained"


def test_up_again_when_the_pressure_has_been_gone_for_a_while():
    run = Run()
    run.feed(LIGHT, 1)
    run.feed(LIGHT, 8, pressing={"low_power"})
    assert run.governor.rung == 2
    run.feed(LIGHT, 9)
    assert run.governor.rung == 2
    run.feed(LIGHT, 6)
    assert run.governor.rung == 0
    assert run.decisions[-1][1].reason == "head_room"


def test_pressure_that_comes_and_goes_does_not_make_the_rung_swing():
    run = Run()
    for _ in range(30):
        run.feed(LIGHT, 1, pressing={"thermal"})
        run.feed(LIGHT, 1)
    assert not any(not decision.is_downgrade for _, decision in run.decisions)
    assert len(run.decisions) == 4


def test_a_harsh_rung_is_left_under_pressure_too():
    """Half the frames were taken for a queue: memory that is short does not keep them away."""
    run = Run()
    run.feed(LIGHT, 2)
    slow = {stage: 8 * ms for stage, ms in LIGHT.items()}
    run.feed(slow, 5)
    run.feed(slow, 0.5, delay_ms=60.0)
    assert LADDER[run.governor.rung].name == "frames_half"
    run.feed(LIGHT, 10, pressing={"memory_constrained"})
    assert LADDER[run.governor.rung].name == "align_half"


DEAR = {**LIGHT, "enhance": 130.0}  # enhance alone, as when a face comes close


@pytest.mark.parametrize("load_s", [5, 12, 20, 33, 50])
def test_what_got_dear_alone_comes_back_within_ten_seconds_of_being_cheap(load_s):
    """C09: nothing that still runs tells, so it is tried on single frames; no rung is changed."""
    run = Run()
    run.feed(LIGHT, 3)
    run.feed(DEAR, load_s)
    assert LADDER[run.governor.rung].name == "enhance_off"
    assert len(run.decisions) == 1
    run.feed(LIGHT, 10)
    assert run.governor.rung == 0
    run.feed(LIGHT, 60)
    assert len(run.decisions) == 3  # down at once, up in two


def test_a_dear_stage_is_tried_rarely():
    """A fortieth of the time at most, and less after a minute without luck."""
    run = Run()
    run.feed(LIGHT, 3)
    run.feed(DEAR, 600)
    assert len(run.decisions) == 1
    first_minute = [at_s for at_s in run.sounded_s if at_s < 63]
    assert 0.130 * len(first_minute) <= 60 / 40
    assert len(run.sounded_s) - len(first_minute) <= 12


def test_one_cheap_try_is_not_believed():
    run = Run()
    run.feed(LIGHT, 3)
    run.feed(DEAR, 6)
    while not run.must_sound:
        run.feed(DEAR, 1 / 30)
    run.feed(LIGHT, 1 / 30)
    assert run.must_sound  # it is tried again at once
    run.feed(DEAR, 3)
    assert LADDER[run.governor.rung].name == "enhance_off"


def test_nothing_is_tried_in_a_queue_or_under_pressure_or_without_room():
    busy = {"detect": 9.0, "align": 12.0, "swap": 14.0, "enhance": 130.0}
    for costs, more in (
        (DEAR, {"delay_ms": 36.0}),
        (DEAR, {"pressing": {"thermal"}}),
        (busy, {}),
    ):
        run = Run()
        run.feed(LIGHT, 3)
        run.feed(DEAR, 1)
        run.feed(costs, 40, **more)
        assert run.sounded_s == []


def test_where_there_is_no_face_a_try_is_asked_for_again_later():
    run = Run()
    run.feed(LIGHT, 3)
    run.feed(DEAR, 6)
    asked = 0
    without = {stage: ms for stage, ms in LIGHT.items() if stage != "enhance"}
    for _ in range(600):
        run.must_sound = False  # nobody enhances
        run.feed(without, 1 / 30)
        asked += run.must_sound
    assert 2 <= asked <= 5
    run.feed(LIGHT, 12)
    assert run.governor.rung == 0


def test_a_queue_is_seen_when_frames_come_rarely_too():
    """When each takes 133 ms no two hundred of them hold more than two."""
    governor = Governor(GovernorConfig(), FRAME_MS)
    now_ns, reasons = 0, []
    for _ in range(20):
        now_ns += 133 * NS_PER_MS
        reasons.append(governor.note_frame(now_ns, {"align": 5.0}, 70.0).reason)
    assert reasons.index("queue_delay") <= 4


def test_several_slow_frames_in_a_row_are_believed_and_one_is_not():
    costs = Costs(LADDER, {})
    for cost_ms in (6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 133.0, 6.0, 133.0, 6.0):
        costs.note(0, "enhance", cost_ms)
    assert costs.get_ms("enhance") < 8.5
    for _ in range(3):
        costs.note(0, "enhance", 133.0)
    assert costs.get_ms("enhance") > 25.0


def test_an_operation_that_is_switched_off_weighs_no_more():
    """A page turns a heavy operation off: what it cost must not keep the job down for ever."""
    run = Run()
    heavy = LIGHT | {"puppet": 40.0}
    run.feed(heavy, 6)
    assert run.governor.rung > 0
    run.governor.set_stages(tuple(LIGHT), {})
    run.feed(LIGHT, 40)
    assert run.governor.rung == 0


def test_stages_that_share_a_thread_add_up_only_there():
    run = Run()
    run.feed({"detect": 20.0, "blur": 20.0}, 3)
    one = run.governor.predict_ms(0)
    run.governor.set_stages(("detect", "blur"), {"detect": 0, "blur": 1})
    assert run.governor.predict_ms(0) < one
