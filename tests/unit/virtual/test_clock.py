"""Virtual time: one at a time, always in the same order, and never a hang without a word."""

from __future__ import annotations

import signal
import threading
import time
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, Clock
from livefuse.errors import JobError
from livefuse.ring import Ring, RingClosed, RingMode
from livefuse.virtual import Costs, TableCosts, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

_MS = NS_PER_MS


def _clock(**costs_ms: float) -> VirtualClock:
    return VirtualClock(TableCosts(Costs(costs_ms=costs_ms)))


def test_is_a_clock() -> None:
    clock: Clock = VirtualClock(start_ns=5, epoch_s=100.0)
    assert clock.now_ns() == 5
    assert clock.epoch_s() == 100.0
    clock.charge("nothing")  # of no actor, so it costs nothing
    assert clock.now_ns() == 5


def test_sleepers_wake_in_the_order_of_their_time_and_then_of_their_coming() -> None:
    clock, seen = VirtualClock(), []

    def sleep(name: str, until_ms: int) -> Callable[[], None]:
        def run() -> None:
            clock.sleep_until(until_ms * _MS)
            seen.append((name, clock.now_ns() // _MS))

        return run

    for name, until_ms in (("c", 30), ("a", 10), ("b", 10), ("late", 10**9)):
        clock.start(name, sleep(name, until_ms))
    assert clock.run_until_done()
    assert seen == [("a", 10), ("b", 10), ("c", 30), ("late", 10**9)]


def test_costs_pass_while_others_run() -> None:
    """Two threads that work 10 ms each, ten times, need 100 ms together, as on two cores."""
    clock = _clock(work=10.0)

    def work() -> None:
        for _ in range(10):
            clock.charge("work")

    for name in "ab":
        clock.start(name, work)
    clock.run_until_done()
    assert clock.now_ns() == 100 * _MS


def test_a_wait_without_notice_ends_at_its_time_and_one_with_notice_at_once() -> None:
    clock = VirtualClock()
    said: list[tuple[object, int]] = []
    condition = clock.create_condition()

    def wait() -> None:
        with condition:
            said.append((condition.wait(0.05), clock.now_ns() // _MS))
            said.append((condition.wait(0.05), clock.now_ns() // _MS))
            said.append((condition.wait_for(lambda: 0, 0.1), clock.now_ns() // _MS))
            said.append((condition.wait_for(lambda: "yes", 0), clock.now_ns() // _MS))

    def notify() -> None:
        clock.sleep_until(70 * _MS)
        with condition:
            condition.notify_all()

    clock.start("wait", wait)
    clock.start("notify", notify)
    clock.run_until_done()
    assert said == [(False, 50), (True, 70), (0, 170), ("yes", 170)]


def test_those_notified_together_go_in_the_order_in_which_they_came() -> None:
    clock, seen = VirtualClock(), []
    condition = clock.create_condition()

    def wait(name: str) -> Callable[[], None]:
        def run() -> None:
            with condition:
                condition.wait()
                seen.append(name)

        return run

    def notify() -> None:
        with condition:
            condition.notify_all()

    for name in "cab":
        clock.start(name, wait(name))
    clock.start("notify", notify)
    clock.run_until_done()
    assert seen == ["c", "a", "b"]


def test_an_event_ends_a_wait_at_the_moment_it_is_set() -> None:
    clock, event, said = VirtualClock(), threading.Event(), []

    def wait() -> None:
        said.append((clock.wait(event, 20 * _MS), clock.now_ns() // _MS))
        said.append((clock.wait(event, 10**18), clock.now_ns() // _MS))
        said.append((clock.wait(event, 10**18), clock.now_ns() // _MS))

    def set_it() -> None:
        clock.sleep_until(33 * _MS)
        event.set()

    clock.start("wait", wait)
    clock.start("set", set_it)
    clock.run_until_done()
    assert said == [(False, 20), (True, 33), (True, 33)]


def test_a_fault_of_an_actor_comes_out_and_the_others_end() -> None:
    clock = VirtualClock()
    ring: Ring[int] = Ring(1, condition=clock.create_condition())
    ended: list[str] = []

    def wait() -> None:
        try:
            ring.take()
        except Exception:  # noqa: BLE001 - what a stage does: it must not meet the end as an error
            ended.append("as an error")
        finally:
            ended.append("taker")

    def fail() -> None:
        clock.sleep_until(_MS)
        raise ValueError("broken")

    clock.start("taker", wait)
    clock.start("failing", fail)
    with pytest.raises(ValueError, match="broken"):
        clock.run_until_done()
    assert ended == ["taker"]
    assert not _list_threads()


def test_actors_that_wait_for_one_another_are_named() -> None:
    clock = VirtualClock()
    ring: Ring[int] = Ring(1, mode="every_frame", condition=clock.create_condition())
    other: Ring[int] = Ring(1, condition=clock.create_condition())

    def put_two() -> None:
        ring.put(1)
        ring.put(2)

    def take() -> None:
        other.take()

    clock.start("decode", put_two)
    clock.start("encode", take)
    with pytest.raises(JobError, match=r"decode in put \(ring.py:\d+\), encode in take \(ring.py"):
        clock.run_until_done()
    assert not _list_threads()


def test_one_who_asks_for_ever_without_time_passing_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("livefuse.virtual.baton._MAX_TURNS", 50)
    clock = VirtualClock()
    condition = clock.create_condition()

    def ask() -> None:
        while True:
            condition.wait(0)

    clock.start("asker", ask)
    with pytest.raises(JobError, match=r"no time passes any more: asker in ask"):
        clock.run_until_done()


def test_stops_at_a_moment_and_goes_on() -> None:
    clock, seen = VirtualClock(), []

    def tick() -> None:
        for moment in range(1, 6):
            clock.sleep_until(moment * 10 * _MS)
            seen.append(moment)

    clock.start("tick", tick)
    assert not clock.run_until_done(25 * _MS)
    assert (seen, clock.now_ns()) == ([1, 2], 25 * _MS)
    assert not clock.run_until_done(30 * _MS)
    assert seen == [1, 2, 3]
    clock.stop()
    assert seen == [1, 2, 3]
    assert not _list_threads()


def test_a_signal_ends_all_and_comes_out() -> None:
    """Ctrl-C reaches the thread that waits for the actors, whoever runs just then."""
    clock, ended = VirtualClock(), []

    def work() -> None:
        try:
            clock.sleep_until(10 * _MS)
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.1)  # busy while the owner is told
            clock.sleep_until(10**18)
        finally:
            ended.append("work")

    clock.start("other", lambda: clock.sleep_until(10**18))
    clock.start("work", work)
    # What was started in the background by a shell may have been told to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            clock.run_until_done()
    finally:
        signal.signal(signal.SIGINT, before)
    clock.stop()
    assert ended == ["work"]
    assert not _list_threads()


def test_a_daemon_is_not_waited_for() -> None:
    clock, seen = VirtualClock(), []

    def watch() -> None:
        while True:
            clock.sleep_until(clock.now_ns() + 10 * _MS)
            seen.append(clock.now_ns() // _MS)

    clock.start("watch", watch, is_daemon=True)
    clock.start("work", lambda: clock.sleep_until(35 * _MS))
    assert clock.run_until_done()
    assert seen == [10, 20, 30]


def test_an_actor_may_start_others() -> None:
    clock, seen = VirtualClock(), []

    def child() -> None:
        clock.sleep_until(9 * _MS)
        seen.append("child")

    def parent() -> None:
        clock.sleep_until(5 * _MS)
        clock.start("child", child)
        seen.append("parent")

    clock.start("parent", parent)
    clock.run_until_done()
    assert seen == ["parent", "child"]
    assert clock.now_ns() == 9 * _MS


def test_only_actors_wait() -> None:
    clock = VirtualClock()
    for wait in (
        lambda: clock.wait(threading.Event(), 1),
        lambda: clock.sleep_until(1),
        lambda: clock.create_condition().wait(1.0),
    ):
        with pytest.raises(RuntimeError, match="only an actor"):
            wait()


def test_what_is_done_aside_is_not_measured() -> None:
    spent: list[int] = []

    class Costs:
        def get_cost_ns(self, work: str, spent_ns: int) -> int:
            spent.append(spent_ns)
            return 0

    clock = VirtualClock(Costs())

    def work() -> None:
        with clock.unmeasured():
            time.sleep(0.05)
        clock.charge("first")
        time.sleep(0.05)
        clock.charge("second")

    clock.start("work", work)
    clock.run_until_done()
    assert spent[0] < 45 * _MS <= spent[1]


# Chains of stages, with all that live ones do: rings that drop or wait, costs, time-outs.

_MODES: tuple[RingMode, ...] = ("live", "every_frame")
_STAGES = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(_MODES), st.integers(0, 60)),
    min_size=1,
    max_size=4,
)
_GAPS = st.lists(st.integers(0, 50), min_size=1, max_size=12)


class _Chain:
    """A source that feeds stages one behind the other, and all that happened, with its time.

    `naps_s`: how long threads really sleep now and then, which must make no difference.
    """

    def __init__(self, stages: list[tuple[int, RingMode, int]], naps_s: list[float]) -> None:
        self.story: list[tuple[Any, ...]] = []
        self._naps_s = naps_s
        self._clock = _clock(**{f"stage-{i}": float(cost) for i, (_, _, cost) in enumerate(stages)})
        self._rings: list[Ring[int]] = [
            Ring(
                capacity,
                mode=mode,
                on_drop=partial(self._tell, "drop", index),
                condition=self._clock.create_condition(),
            )
            for index, (capacity, mode, _) in enumerate(stages)
        ]

    def run(self, gaps_ms: list[int]) -> list[tuple[Any, ...]]:
        for index in range(len(self._rings)):
            self._clock.start(f"stage-{index}", partial(self._work, index))
        self._clock.start("feed", partial(self._feed, gaps_ms))
        self._clock.run_until_done()
        self._tell("end", *(ring.statistics() for ring in self._rings))
        return self.story

    def _tell(self, *words: Any) -> None:
        time.sleep(self._naps_s[len(self.story) % len(self._naps_s)])
        self.story.append((self._clock.now_ns(), *words))

    def _feed(self, gaps_ms: list[int]) -> None:
        for item, now_ms in enumerate(accumulate(gaps_ms)):
            self._clock.sleep_until(now_ms * _MS)
            self._tell("feed", item)
            self._rings[0].put(item)
        self._rings[0].close()

    def _work(self, index: int) -> None:
        try:
            while True:
                item = self._rings[index].take_within(25 * _MS)
                self._tell("take", index, item)
                if item is not None:
                    self._clock.charge(f"stage-{index}")
                    self._pass_on(index + 1, item)
        except RingClosed:
            if index + 1 < len(self._rings):
                self._rings[index + 1].close()

    def _pass_on(self, index: int, item: int) -> None:
        if index < len(self._rings):
            self._rings[index].put(item)


@settings(max_examples=60, deadline=None)
@given(stages=_STAGES, gaps_ms=_GAPS, data=st.data())
def test_the_story_is_the_same_however_the_machine_schedules(
    stages: list[tuple[int, RingMode, int]], gaps_ms: list[int], data: st.DataObject
) -> None:
    first = _Chain(stages, [0.0]).run(gaps_ms)
    naps_s = data.draw(st.lists(st.sampled_from((0.0, 0.0002, 0.001)), min_size=1, max_size=5))
    assert _Chain(stages, naps_s).run(gaps_ms) == first
    times = [moment for moment, *_ in first]
    assert times == sorted(times)


@settings(max_examples=60, deadline=None)
@given(stages=_STAGES, gaps_ms=_GAPS)
def test_nothing_is_lost_without_a_word(
    stages: list[tuple[int, RingMode, int]], gaps_ms: list[int]
) -> None:
    story = _Chain(stages, [0.0]).run(gaps_ms)
    last = len(stages) - 1
    dropped = [entry[3] for entry in story if entry[1] == "drop"]
    shown = [entry[3] for entry in story if entry[1:3] == ("take", last) and entry[3] is not None]
    assert sorted([*dropped, *shown]) == list(range(len(gaps_ms)))
    assert shown == sorted(shown)


def _list_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("livefuse-virtual")]
