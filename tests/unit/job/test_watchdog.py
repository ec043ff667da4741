"""Pulses in, verdicts out; and how often something may be made anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, NS_PER_S, ManualClock
from livefuse.errors import JobError
from livefuse.job.watchdog import LOADING, Pulse, Restarts, Watchdog, get_part

LIMIT_NS = 10 * NS_PER_S
LOOK_NS = NS_PER_S // 4


class Bench:
    """A watchdog that looks four times a second at one loop that has worked before."""

    def __init__(self, limit_ns=LIMIT_NS):
        self.clock = ManualClock(start_ns=7 * NS_PER_S)
        self.pulse = Pulse("pipeline", self.clock, limit_ns)
        self.watchdog = Watchdog()
        self.watchdog.watch([self.pulse])
        self.pulse.begin()
        self.pulse.end()

    def run(self, seconds):
        found = []
        for _ in range(round(seconds * 4)):
            self.clock.advance(LOOK_NS)
            found += self.watchdog.look(self.clock.now_ns())
        return found


def test_waiting_is_no_work():
    assert Bench().run(3600) == []


def test_a_stall_of_three_seconds_is_told_once_and_nothing_else_happens():
    """C12."""
    bench = Bench()
    bench.pulse.begin("blur")
    found = bench.run(3)
    bench.pulse.end()
    found += bench.run(30)
    assert [(v.kind, v.work) for v in found] == [("slow", "blur")]


def test_work_beyond_its_limit_hangs_and_is_looked_at_no_more():
    bench = Bench()
    bench.pulse.begin("detect")
    bench.pulse.begin("swap")  # a step after the other: the frame is the same
    found = bench.run(60)
    assert [(v.kind, v.work) for v in found] == [("slow", "swap"), ("hung", "swap")]
    assert LIMIT_NS < found[1].age_ns <= LIMIT_NS + LOOK_NS
    assert bench.pulse.is_left_behind


def test_the_first_work_may_take_ten_times_as_long():
    clock, watchdog = ManualClock(), Watchdog()
    pulse = Pulse("encode", clock, NS_PER_S)
    watchdog.watch([pulse])
    watchdog.look(0)
    pulse.begin()
    kinds = []
    for _ in range(44):
        clock.advance(LOOK_NS)
        kinds += [(v.kind, clock.now_ns() / NS_PER_S) for v in watchdog.look(clock.now_ns())]
    assert kinds == [("slow", 1.25), ("hung", 10.25)]


def test_without_a_limit_nothing_is_too_long():
    bench = Bench(limit_ns=None)
    bench.pulse.begin("load")
    assert bench.run(600) == []


def test_time_in_which_nobody_ran_is_held_against_nobody():
    """A computer that slept, a process that was stopped: C59's SIGSTOP would look like a hang."""
    bench = Bench()
    bench.run(1)
    bench.pulse.begin("blur")
    bench.run(0.5)
    bench.clock.advance(3600 * NS_PER_S)
    assert bench.run(0.25) == []
    found = bench.run(20)
    assert [v.kind for v in found] == ["slow", "hung"]


def test_what_has_died_is_told_with_its_error():
    bench = Bench()
    error = JobError("gone")
    bench.pulse.die(error)
    verdicts = bench.run(5)
    assert [(v.kind, v.error) for v in verdicts] == [("died", error)]


def test_another_takes_the_place_of_one_of_its_name_and_parts_go_together():
    clock, watchdog = ManualClock(), Watchdog()
    old = [Pulse(name, clock, NS_PER_S) for name in ("pipeline", "pipeline-2", "encode")]
    watchdog.watch(old)
    for pulse in old:
        pulse.die(JobError("gone"))
    watchdog.forget("pipeline")
    watchdog.watch([Pulse("encode", clock, NS_PER_S)])
    assert watchdog.look(0) == []


@pytest.mark.parametrize(("name", "part"), [("pipeline", "pipeline"), ("pipeline-12", "pipeline")])
def test_loops_belong_to_parts(name, part):
    assert get_part(name) == part


def test_the_first_is_due_at_once_and_the_others_wait_longer_each_time():
    restarts = Restarts(5)
    waits = [restarts.ask("pipeline", "hung", 0) for _ in range(6)]
    half = NS_PER_S // 2
    assert waits == [0, half, 2 * half, 4 * half, 8 * half, None]
    assert restarts.ask("encode", "died", 0) == 0
    assert restarts.counts() == {"pipeline_hung": 5, "encode_died": 1}
    assert restarts.count_recent("pipeline", 30 * NS_PER_S) == 5
    assert restarts.count_recent("pipeline", 30 * NS_PER_S, "died") == 0
    assert restarts.count_recent("encode", 61 * NS_PER_S) == 0
    assert restarts.ask("pipeline", "hung", 61 * NS_PER_S) == 0


@pytest.mark.parametrize("part", ["encode", "audio"])
def test_what_is_made_anew_in_a_moment_is_not_waited_for_long(part):
    """Five failures in a row: no picture is missed for a second and a half."""
    restarts, now_ns = Restarts(5), 0
    waits = []
    while (wait_ns := restarts.ask(part, "died", now_ns)) is not None:
        waits.append(wait_ns / NS_PER_MS)
        now_ns += wait_ns
    assert waits[:7] == [0, 25, 50, 100, 200, 400, 400]
    assert sum(waits[:5]) < 500
    assert len(waits) == restarts.get_most(part) == 20, "it ends"
    assert 5000 < sum(waits) < 10_000, "what cannot be had for some seconds ends no job"


def test_a_part_that_has_worked_well_starts_afresh():
    restarts = Restarts(5)
    for at_s in range(5):
        restarts.ask("pipeline", "died", at_s * NS_PER_S, worked_ns=NS_PER_S)
    assert restarts.ask("pipeline", "died", 6 * NS_PER_S, worked_ns=4 * NS_PER_S) is None
    for at_s in range(10, 100, 6):
        assert restarts.ask("pipeline", "died", at_s * NS_PER_S, worked_ns=5 * NS_PER_S) == 0
    assert restarts.ask("pipeline", "died", 100 * NS_PER_S) == NS_PER_S // 2


def test_what_hangs_for_more_than_a_minute_each_time_is_given_up_too():
    restarts, now_ns = Restarts(3), 0
    tries = 0
    while restarts.ask("pipeline", "hung", now_ns, took_ns=120 * NS_PER_S) is not None:
        tries += 1
        now_ns += 121 * NS_PER_S
    assert tries == 3


def test_loading_is_not_slow_and_has_its_limit():
    clock, watchdog = ManualClock(), Watchdog()
    pulse = Pulse("pipeline-load", clock, 60 * NS_PER_S)
    pulse.has_worked = True
    watchdog.watch([pulse])
    pulse.begin(LOADING)
    verdicts = []
    for _ in range(250):
        verdicts += watchdog.look(clock.now_ns())
        clock.advance(NS_PER_S // 4)
    assert [(verdict.kind, verdict.work) for verdict in verdicts] == [("hung", "loading")]
    assert watchdog.find_slow_work("pipeline", clock.now_ns()) == ""


def test_how_long_a_loop_has_worked_does_not_count_what_it_hangs_in():
    clock, watchdog = ManualClock(), Watchdog()
    pulse = Pulse("pipeline", clock, NS_PER_S)
    watchdog.watch([pulse])
    clock.advance(20 * NS_PER_S)
    assert pulse.worked_ns == 0
    for _ in range(8):
        pulse.begin()
        pulse.end()
        clock.advance(NS_PER_S)
    pulse.begin()
    verdicts = []
    for _ in range(10):
        verdicts += watchdog.look(clock.now_ns())
        clock.advance(NS_PER_S // 4)
    assert verdicts[-1].kind == "hung"
    assert verdicts[-1].worked_ns == 7 * NS_PER_S


@given(
    st.lists(st.integers(0, 20_000), min_size=1, max_size=60),
    st.integers(0, 6),
)
def test_never_more_than_allowed_within_a_minute(gaps_ms, most):
    restarts, now_ns, times = Restarts(most), 0, list[int]()
    for gap_ms in gaps_ms:
        now_ns += gap_ms * NS_PER_MS
        if restarts.ask("pipeline", "died", now_ns) is not None:
            times.append(now_ns)
    for at_ns in times:
        assert sum(at_ns <= t <= at_ns + 60 * NS_PER_S for t in times) <= most
    assert sum(restarts.counts().values()) == len(times)
