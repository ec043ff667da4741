"""Frames: planes are views of one buffer; handles go stale; the pool is bounded."""

import numpy as np
import pytest

from livefuse.frame import FramePool, create_frame


def test_planes_are_views_of_the_buffer():
    frame = create_frame(64, 48)
    assert (frame.width, frame.height) == (64, 48)
    assert frame.buffer.shape == (72, 64)
    frame.y[:] = 1
    frame.u[:] = 2
    frame.v[:] = 3
    flat = frame.buffer.reshape(-1)
    assert np.unique(flat[: 64 * 48]).tolist() == [1]
    assert np.unique(flat[64 * 48 : 64 * 60]).tolist() == [2]
    assert np.unique(flat[64 * 60 :]).tolist() == [3]


@pytest.mark.parametrize("size", [(63, 48), (64, 47), (0, 48), (64, -2)])
def test_odd_or_empty_sizes_are_refused(size):
    with pytest.raises(ValueError, match="even and positive"):
        create_frame(*size)


def test_the_pool_lends_no_more_than_it_has_and_takes_back():
    pool = FramePool(16, 16, 2)
    first, second = pool.acquire(), pool.acquire()
    assert first is not None
    assert second is not None
    assert pool.acquire() is None
    assert pool.lent == 2
    pool.release(first)
    pool.release(first)
    assert pool.lent == 1
    assert pool.acquire() is first
    assert pool.acquire() is None


def test_a_stale_handle_answers_none_never_other_pixels():
    pool = FramePool(16, 16, 1)
    frame = pool.acquire()
    assert frame is not None
    handle = frame.handle
    assert pool.get(handle) is frame
    pool.release(frame)
    assert pool.get(handle) is None
    again = pool.acquire()
    assert again is frame
    assert pool.get(handle) is None
    assert again is not None
    assert pool.get(again.handle) is again


def test_a_lent_picture_is_copied_only_when_the_planes_are_wanted():
    frame, copies = create_frame(16, 16), []
    picture = object()
    frame.lend(picture, lambda: copies.append(frame.picture))
    assert frame.picture is picture
    assert copies == []
    frame.fill_planes()
    frame.fill_planes()
    assert frame.picture is None
    assert copies == [None]


def test_a_copy_that_fails_leaves_no_lent_picture():
    """Never bare: an encoder must not find a picture that nobody treated."""

    def fail():
        raise ValueError("no")

    frame = create_frame(16, 16)
    frame.lend(object(), fail)
    with pytest.raises(ValueError, match="no"):
        frame.fill_planes()
    assert frame.picture is None


def test_a_frame_taken_back_lets_go_of_a_lent_picture():
    pool = FramePool(16, 16, 1)
    frame = pool.acquire()
    assert frame is not None
    frame.lend(object(), lambda: None)
    pool.release(frame)
    assert frame.picture is None


def test_a_pool_that_is_discarded_lends_nothing_and_bears_late_returns():
    pool = FramePool(64, 48, 3)
    late, other = pool.acquire(), pool.acquire()
    assert late is not None
    assert other is not None
    pool.discard()
    assert pool.acquire() is None
    pool.release(late)
    pool.replace(other)
    assert pool.get(late.handle) is None
    assert pool.acquire() is None
    assert pool.lent == 0
