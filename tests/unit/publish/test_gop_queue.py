"""A queue that a decoder can follow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from livefuse.publish.gop_queue import GopQueue

# (is keyframe, weight, whether the reader takes one afterwards)
steps = st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.booleans()), max_size=60)


@given(steps, st.integers(5, 20))
def test_it_stays_bounded_loses_nothing_uncounted_and_resumes_at_keyframes(steps, limit):
    queue: GopQueue[int] = GopQueue(limit)
    kinds, got, waiting = {}, [], {}
    for index, (is_keyframe, weight, reads) in enumerate(steps):
        kinds[index] = is_keyframe
        queue.put(index, weight=weight, is_keyframe=is_keyframe)
        waiting[index] = weight
        if reads and (item := queue.get()) is not None:
            got.append(item)
    while (item := queue.get()) is not None:
        got.append(item)
    assert got == sorted(got)
    assert len(got) + queue.dropped == len(steps)
    for before, after in zip([-1, *got], got, strict=False):
        # After any gap the reader is given a keyframe.
        assert (after == before + 1 and before >= 0) or kinds[after]


def test_the_limit_holds():
    queue: GopQueue[int] = GopQueue(3)
    for index in range(3):
        queue.put(index, is_keyframe=index == 0)
    assert queue.is_full()
    assert not queue.put(3, is_keyframe=False)
    assert (len(queue), queue.dropped, queue.waits_for_keyframe) == (0, 4, True)
    assert queue.put(4, is_keyframe=True)
    assert queue.get() == 4


def test_one_item_is_taken_however_large_it_is():
    queue: GopQueue[int] = GopQueue(10)
    assert queue.put(1, weight=1000, is_keyframe=True)
