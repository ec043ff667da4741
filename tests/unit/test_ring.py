"""Ring: bounded, newest wins, drops told; or, for files, nothing lost."""

import threading

import pytest

from livefuse.ring import Ring, RingClosed


def test_live_ring_drops_the_oldest_and_tells():
    dropped: list[int] = []
    ring: Ring[int] = Ring(2, on_drop=dropped.append)
    for item in range(5):
        ring.put(item)
    assert dropped == [0, 1, 2]
    assert [ring.take(), ring.take()] == [3, 4]
    statistics = ring.statistics()
    assert (statistics.put, statistics.taken, statistics.dropped) == (5, 2, 3)
    assert statistics.put == statistics.taken + statistics.dropped + statistics.waiting


def test_every_frame_ring_makes_the_putter_wait_and_loses_nothing():
    """C11"""
    ring: Ring[int] = Ring(2, mode="every_frame", on_drop=lambda _: pytest.fail("dropped"))

    def produce():
        for item in range(100):
            ring.put(item)

    producer = threading.Thread(target=produce)
    producer.start()
    assert [ring.take() for _ in range(100)] == list(range(100))
    producer.join(5)
    assert ring.statistics().dropped == 0


def test_a_closed_ring_refuses_putters_and_hands_out_what_is_left():
    ring: Ring[int] = Ring(2)
    ring.put(1)
    assert ring.close() == []
    with pytest.raises(RingClosed):
        ring.put(2)
    assert ring.take() == 1
    with pytest.raises(RingClosed):
        ring.take()


def test_closing_with_discard_returns_the_waiting_items():
    ring: Ring[int] = Ring(3)
    ring.put(1)
    ring.put(2)
    assert ring.close(discard=True) == [1, 2]
    with pytest.raises(RingClosed):
        ring.take()


def test_closing_wakes_whoever_waits():
    full: Ring[int] = Ring(1, mode="every_frame")
    full.put(0)
    ended: list[str] = []

    def put() -> None:
        try:
            full.put(1)
        except RingClosed:
            ended.append("putter")

    empty: Ring[int] = Ring(1)

    def take() -> None:
        try:
            empty.take()
        except RingClosed:
            ended.append("taker")

    threads = [threading.Thread(target=put), threading.Thread(target=take)]
    for thread in threads:
        thread.start()
    full.close()
    empty.close()
    for thread in threads:
        thread.join(5)
    assert sorted(ended) == ["putter", "taker"]


def test_a_ring_holds_at_least_one():
    with pytest.raises(ValueError, match="at least one"):
        Ring(0)
