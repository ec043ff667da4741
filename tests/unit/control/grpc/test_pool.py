"""The threads of calls: as many as are needed, none behind one that waits, none left over."""

import threading

import pytest

from livefuse.control.grpc.pool import DaemonPool


def count_threads():
    return sum(thread.name == "livefuse-grpc" for thread in threading.enumerate())


def test_a_task_gets_a_thread_while_others_wait():
    pool, go = DaemonPool(8), threading.Event()
    for _ in range(30):  # the ones that just end and the ones that stay, mixed
        assert pool.submit(lambda: 1).result(5) == 1
    waiting = [pool.submit(go.wait, 20) for _ in range(7)]
    for _ in range(20):
        assert pool.submit(lambda: 2).result(5) == 2
    assert count_threads() <= 8
    go.set()
    assert all(one.result(5) for one in waiting)
    pool.shutdown()
    assert count_threads() == 0


def test_no_more_than_its_size_and_what_waits_is_done_later():
    pool, go = DaemonPool(2), threading.Event()
    tasks = [pool.submit(go.wait, 20) for _ in range(6)]
    assert count_threads() == 2
    go.set()
    assert all(task.result(5) for task in tasks)
    pool.shutdown()


def test_a_failure_is_handed_over_and_the_thread_goes_on():
    pool = DaemonPool(1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(5)
    assert pool.submit(lambda: 3).result(5) == 3
    pool.shutdown()


def test_after_the_end_nothing_begins():
    pool, began, go = DaemonPool(1), threading.Event(), threading.Event()

    def work():
        began.set()
        return go.wait(20)

    busy, late = pool.submit(work), pool.submit(lambda: 1)
    assert began.wait(5)
    pool.shutdown(wait=False, cancel_futures=True)
    assert late.cancelled()
    with pytest.raises(RuntimeError):
        pool.submit(lambda: 1)
    go.set()
    assert busy.result(5)
    pool.shutdown()
    assert count_threads() == 0
