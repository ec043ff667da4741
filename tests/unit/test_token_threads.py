"""One token and many threads; many tokens and short lives."""

import gc
import threading
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.clock import NS_PER_MS, NS_PER_S, ManualClock
from livefuse.errors import TokenError
from livefuse.token import MAX_LOG_ENTRIES, Token, TokenCell, TokenStore, create_token, parse_token


class Hammer:
    """Threads that write entries of their own into one token, and one that only reads it."""

    def __init__(self, threads, each):
        self.cell = TokenCell(create_token(["detect"], now_epoch_s=0))
        self.written = []
        self.torn = []
        self._start = threading.Barrier(threads + 1)
        self._done = threading.Event()
        writers = [threading.Thread(target=self._write, args=(n, each)) for n in range(threads)]
        reader = threading.Thread(target=self._read)
        for thread in (*writers, reader):
            thread.start()
        for thread in writers:
            thread.join()
        self._done.set()
        reader.join()

    def _write(self, name, each):
        self._start.wait()
        for i in range(each):
            entry = f"{name}.{i}"
            token = self.cell.update(lambda t, e=entry: t.update_state(e, at=0, reason=e))  # type: ignore[misc] # a default binds it
            self.written.append(tuple(log.state for log in token.log))

    def _read(self):
        self._start.wait()
        while not self._done.is_set():
            token = self.cell.get()
            latest = token.log[-1] if token.log else None
            if latest is not None and not latest.state == latest.reason == token.state:
                self.torn.append(token.state)
            if parse_token(token.to_json()) != token:
                self.torn.append(token.state)


@settings(max_examples=8, deadline=None)
@given(threads=st.integers(2, 8), each=st.integers(1, 60))
def test_many_threads_lose_no_entry_and_see_no_torn_state(threads, each):
    """R7"""
    hammer = Hammer(threads, each)
    logs, total = hammer.written, threads * each
    assert hammer.torn == []
    assert {log[-1] for log in logs} == {f"{n}.{i}" for n in range(threads) for i in range(each)}
    # Each log continues another one: nobody's entry was written over.
    assert len(logs) == len(set(logs)) == total
    assert len({log[-2] for log in logs if len(log) > 1}) == total - 1
    assert len(hammer.cell.get().log) == min(total, MAX_LOG_ENTRIES)


def test_a_change_that_fails_leaves_the_token():
    cell = TokenCell(create_token(["detect"], now_epoch_s=0))
    before = cell.get()
    with pytest.raises(ZeroDivisionError):
        cell.update(lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
    assert cell.get() is before
    assert cell.update(lambda token: token.update_state("next", at=1)).state == "next"


def test_a_running_job_s_token_never_expires():
    """R8"""
    cell = TokenCell(create_token(["detect"], now_epoch_s=1000.0, ttl_s=10.0))
    token = first = cell.get()
    assert cell.lease(1005.0) is first
    for now in range(1006, 1100):
        token = cell.lease(float(now))
        assert not token.is_expired(now + 5.0)
        assert token is cell.get()
    assert (token.request_id, token.ttl_s) == (first.request_id, 10.0)


def test_a_frame_s_token_ends_with_its_deadline():
    """R8, R11"""
    job = create_token(["detect"], now_epoch_s=1000.0)
    frame = job.create_frame_token("3:41", 1200.0, 0.033)
    assert (frame.target_face, frame.request_id) == ("3:41", job.request_id)
    assert not frame.is_expired(1200.03)
    assert frame.is_expired(1200.04)
    assert (job.target_face, job.timestamp) == ("", 1000.0)


@pytest.fixture
def clock():
    return ManualClock()


def create(clock, name, ttl_s=1.0, source_face=""):
    return create_token(
        ["detect"],
        now_epoch_s=clock.epoch_s(),
        request_id=name,
        ttl_s=ttl_s,
        source_face=source_face,
    )


def test_ten_thousand_short_lives_leave_no_memory_behind(clock):
    """R8"""
    held: dict[str, int] = {}

    def release(token):
        held[token.source_face] -= 1

    store = TokenStore(clock, on_release=release)
    gc.collect()
    tracemalloc.start()
    try:
        base = None
        for i in range(10_000):
            face = f"face_{i % 3}"
            held[face] = held.get(face, 0) + 1
            token = create(clock, f"frame {i}", ttl_s=0.1, source_face=face)
            for step in ("detect", "align", "swap"):
                token = token.update_state(step, at=1.0, reason="done", ms=1.0)
            store.put(token)
            clock.advance(33 * NS_PER_MS)
            assert len(store) <= 5
            if i == 500:
                gc.collect()
                base = tracemalloc.get_traced_memory()[0]
        clock.advance(NS_PER_S)
        store.collect()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(store) == 0
    assert set(held.values()) == {0}
    assert base is not None
    assert after - base < 4096


def test_a_token_is_there_until_its_time_is_over(clock):
    released = []
    store = TokenStore(clock, on_release=lambda token: released.append(token.request_id))
    store.put(create(clock, "a", 1.0))
    store.put(create(clock, "b", 2.0))
    clock.advance(NS_PER_S)
    assert store.get("a") is not None
    clock.advance(1)
    assert store.get("a") is None
    assert released == []
    assert store.collect() == 1
    assert store.collect() == 0
    assert released == ["a"]
    assert store.get("b") is not None
    assert store.remove("b")
    assert not store.remove("b")
    assert released == ["a", "b"]


def test_what_is_left_of_a_life_counts_and_not_the_whole(clock):
    token = create(clock, "a", 10.0)
    clock.advance(9 * NS_PER_S)
    store = TokenStore(clock)
    store.put(token)
    clock.advance(NS_PER_S + NS_PER_MS)
    assert store.get("a") is None
    with pytest.raises(TokenError, match="expired"):
        store.put(token)


def test_a_running_job_keeps_its_lease(clock):
    """R8"""
    released: list[Token] = []
    store = TokenStore(clock, capacity=4, on_release=released.append)
    store.put(renewed := create(clock, "job", 10.0), is_lease=True)
    for _ in range(2000):
        clock.advance(5 * NS_PER_S)
        renewed = store.renew("job")
        assert renewed.timestamp == clock.epoch_s()
        store.collect()
    assert store.get("job") == renewed
    assert len(store._queue) < 100
    clock.advance(11 * NS_PER_S)
    assert store.get("job") is None
    with pytest.raises(TokenError, match="expired"):
        store.renew("job")
    assert store.collect() == 1
    assert [token.request_id for token in released] == ["job"]


def test_a_full_store_lets_the_nearest_end_go_and_never_a_lease(clock):
    released = []
    store = TokenStore(
        clock, capacity=3, on_release=lambda token: released.append(token.request_id)
    )
    store.put(create(clock, "job", 1.0), is_lease=True)
    store.put(create(clock, "long", 9.0))
    store.put(create(clock, "short", 3.0))
    store.put(create(clock, "new", 5.0))
    assert (released, store.evicted, len(store)) == (["short"], 1, 3)
    store.put(create(clock, "job 2", 5.0), is_lease=True)
    store.put(create(clock, "job 3", 5.0), is_lease=True)
    with pytest.raises(TokenError, match="running jobs"):
        store.put(create(clock, "one more", 5.0))
    assert store.get("job") is not None
    assert len(store) == 3


def test_the_same_id_replaces_and_releases_what_was_held(clock):
    released = []
    store = TokenStore(
        clock, capacity=1, on_release=lambda token: released.append(token.source_face)
    )
    store.put(create(clock, "a", source_face="one"))
    store.put(create(clock, "a", source_face="two"))
    assert released == ["one"]
    store.clear()
    assert released == ["one", "two"]
    assert len(store) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 5), st.integers(1, 20)),
            st.tuples(st.just("renew"), st.integers(0, 5), st.integers(1, 20)),
            st.tuples(st.just("remove"), st.integers(0, 5), st.just(0)),
            st.tuples(st.just("wait"), st.integers(0, 9), st.just(0)),
        ),
        max_size=60,
    )
)
def test_each_token_that_came_leaves_exactly_once(steps):
    """R8"""
    clock = ManualClock()
    held = 0

    def release(_token):
        nonlocal held
        held -= 1

    store = TokenStore(clock, capacity=4, on_release=release)
    for verb, number, seconds in steps:
        name = str(number)
        if verb == "put":
            store.put(create(clock, name, float(seconds)))
            held += 1
        elif verb == "renew" and store.get(name) is not None:
            assert store.renew(name, float(seconds)).ttl_s == seconds
        elif verb == "remove":
            was_there = store.get(name) is not None
            assert store.remove(name) or not was_there
        elif verb == "wait":
            clock.advance(number * NS_PER_S)
        assert len(store) <= 4
        assert held == len(store)
    clock.advance(100 * NS_PER_S)
    store.collect()
    assert held == len(store) == 0
