"""Requests that go together: equal to one by one, errors to their own caller, nobody stuck."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.runtime.batch import MicroBatcher, split_outputs, stack_feeds


def start_all(calls):
    """Run `calls` in a thread each; return results or exceptions in their order."""
    results: list[Any] = [None] * len(calls)

    def run(index, call):
        try:
            results[index] = call()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[index] = error

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive(), "a caller was never answered"
    return results


class Gate:
    """A network y = 2 x that can be held, and fails for rows with a negative number."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.rows = []

    def __call__(self, feeds):
        self.open.wait(20)
        x = feeds["x"]
        self.rows.append(len(x))
        if (x < 0).any():
            raise ValueError("negative")
        return [2 * x, x.sum(axis=1)]


def ask(batcher, value, rows=1, width=3):
    return lambda: batcher.run({"x": np.full((rows, width), value, np.float32)})


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def run_behind_a_held_one(batcher, gate, calls):
    """Let `calls` queue up while a first run is on; return their results."""
    gate.open.clear()
    first = threading.Thread(target=ask(batcher, 0.0), daemon=True)
    first.start()
    wait_for(lambda: batcher._is_busy)

    def release():
        wait_for(lambda: batcher.requests > len(calls))
        gate.open.set()

    opener = threading.Thread(target=release, daemon=True)
    opener.start()
    results = start_all(calls)
    opener.join(10)
    first.join(10)
    return results


def test_who_comes_alone_goes_at_once():
    gate = Gate()
    batcher = MicroBatcher(gate, 8)
    outputs = ask(batcher, 3.0)()
    assert np.array_equal(outputs[0], np.full((1, 3), 6.0))
    assert gate.rows == [1]


def test_those_who_wait_go_together():
    gate = Gate()
    batcher = MicroBatcher(gate, 8)
    results = run_behind_a_held_one(batcher, gate, [ask(batcher, float(v)) for v in range(1, 6)])
    assert gate.rows == [1, 5]
    assert [float(out[0][0, 0]) for out in results] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert [float(out[1][0]) for out in results] == [3.0, 6.0, 9.0, 12.0, 15.0]


def test_a_run_has_no_more_than_the_largest_number_of_rows():
    gate = Gate()
    batcher = MicroBatcher(gate, 4)
    run_behind_a_held_one(batcher, gate, [ask(batcher, 1.0, rows=3) for _ in range(3)])
    assert gate.rows == [1, 3, 3, 3]


def test_other_shapes_go_by_themselves():
    gate = Gate()
    batcher = MicroBatcher(gate, 8)
    calls = [ask(batcher, 1.0), ask(batcher, 2.0, width=5), ask(batcher, 3.0)]
    results = run_behind_a_held_one(batcher, gate, calls)
    assert sorted(gate.rows) == [1, 1, 2]
    assert results[1][0].shape == (1, 5)


def test_an_error_reaches_its_own_caller_only():
    gate = Gate()
    batcher = MicroBatcher(gate, 8)
    results = run_behind_a_held_one(batcher, gate, [ask(batcher, v) for v in (1.0, -1.0, 2.0)])
    assert isinstance(results[1], ValueError)
    assert float(results[0][0][0, 0]) == 2.0
    assert float(results[2][0][0, 0]) == 4.0
    assert not batcher._is_busy
    assert ask(batcher, 5.0)()[0][0, 0] == 10.0


def test_an_error_of_the_only_one_is_its_own():
    batcher = MicroBatcher(Gate(), 8)
    with pytest.raises(ValueError, match="negative"):
        ask(batcher, -1.0)()
    assert ask(batcher, 1.0)()[0][0, 0] == 2.0


def test_a_full_queue_turns_nobody_away():
    gate = Gate()
    batcher = MicroBatcher(gate, 8, max_waiting=2)
    results = run_behind_a_held_one(batcher, gate, [ask(batcher, float(v)) for v in range(1, 7)])
    assert [float(out[0][0, 0]) for out in results] == [2.0 * v for v in range(1, 7)]
    assert max(gate.rows) <= 2


def test_a_network_that_mixes_its_rows_is_asked_one_by_one():
    batcher = MicroBatcher(lambda feeds: [feeds["x"].sum(axis=0)], 8)
    gate_calls = [ask(batcher, 1.0), ask(batcher, 2.0), ask(batcher, 3.0)]
    assert [float(out[0][0]) for out in start_all(gate_calls)] == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="rows apart"):
        split_outputs([np.zeros((3,))], [1, 1])


def test_an_interrupted_waiter_does_not_hold_the_others(monkeypatch):
    """Ctrl-C in one that waits: the next one still gets its turn."""
    gate = Gate()
    batcher = MicroBatcher(gate, 8)
    real = MicroBatcher._wait

    def wait(self, request):
        if request.feeds["x"][0, 0] == 1.0:

            def interrupt():
                raise KeyboardInterrupt

            request.event.wait = interrupt
        real(self, request)

    monkeypatch.setattr(MicroBatcher, "_wait", wait)

    def interrupted():
        try:
            return ask(batcher, 1.0)()
        except KeyboardInterrupt:
            return "interrupted"

    results = run_behind_a_held_one(batcher, gate, [interrupted, ask(batcher, 2.0)])
    assert results[0] == "interrupted"
    assert results[1][0][0, 0] == 4.0
    assert not batcher._is_busy


@settings(max_examples=25, deadline=None)
@given(
    jobs=st.lists(
        st.lists(st.tuples(st.integers(1, 4), st.sampled_from([3, 5])), min_size=1, max_size=5),
        min_size=1,
        max_size=10,
    ),
    max_rows=st.integers(1, 8),
    max_waiting=st.integers(1, 12),
)
def test_no_job_ever_sees_anothers_rows(jobs, max_rows, max_waiting):
    """Many threads, each with numbers of its own: all get what one by one gives. Some fail."""
    batcher = MicroBatcher(Gate(), max_rows, max_waiting)

    def work(number, requests):
        for turn, (rows, width) in enumerate(requests):
            x = np.full((rows, width), 100.0 * number + turn, np.float32)
            x[:, 0] += np.arange(rows)
            if (number + turn) % 7 == 6:
                x -= 1e6
                with pytest.raises(ValueError, match="negative"):
                    batcher.run({"x": x})
                continue
            double, total = batcher.run({"x": x})
            assert np.array_equal(double, 2 * x)
            assert np.array_equal(total, x.sum(axis=1))
        return "done"

    results = start_all([lambda n=n, r=r: work(n, r) for n, r in enumerate(jobs)])
    assert results == ["done"] * len(jobs)
    assert not batcher._is_busy
    assert not batcher._waiting


def test_stacking_one_copies_nothing():
    feeds = {"x": np.zeros((1, 3), np.float32)}
    assert stack_feeds([feeds]) is feeds
