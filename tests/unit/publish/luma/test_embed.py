"""The invisible mark in a frame: faint, everywhere, and soon as strong as the picture allows."""

import numpy as np
import pytest

from livefuse.frame import create_frame
from livefuse.publish.luma.embed import MIN_SIDE_PX, LumaMark
from tests.faces import create_face_frame


def mark(frame, mark=None, **options):
    """Mark the frame and return what was added to its luma."""
    before = frame.y.astype(np.int16)
    (mark or LumaMark(1, 2)).draw(frame, **options)
    return frame.y - before


def measure_psnr(change):
    return 20 * np.log10(255 / np.sqrt(np.mean(change.astype(float) ** 2)))


def create_noisy(sigma, luma=120, size=(1280, 720)):
    frame = create_frame(*size)
    noise = np.random.default_rng(3).normal(luma, sigma, frame.y.shape)
    frame.y[:] = np.clip(noise, 0, 255)
    return frame


@pytest.mark.parametrize(
    "size", [(1280, 720), (720, 1280), (1920, 1080), (640, 360), (854, 480), (318, 178)]
)
def test_it_is_everywhere_and_faint(size):
    change = mark(create_face_frame(min(size) / 3, size))
    assert measure_psnr(change) >= 42
    assert np.abs(change).max() <= 4
    quarters = [part for half in np.array_split(change, 2) for part in np.array_split(half, 2, 1)]
    assert min(float(np.std(part)) for part in quarters) > 0.3


@pytest.mark.parametrize(("sigma", "luma"), [(0, 120), (0, 16), (3, 16), (12, 120), (60, 128)])
def test_no_picture_is_changed_by_more_than_42_db(sigma, luma):
    assert measure_psnr(mark(create_noisy(sigma, luma))) >= 42


def test_grain_hides_more_than_a_clean_wall_and_black_less():
    wall, grain, black = (
        float(np.std(mark(create_noisy(sigma, luma))))
        for sigma, luma in ((0, 120), (12, 120), (0, 16))
    )
    assert wall == pytest.approx(0.6, abs=0.15)
    assert grain == pytest.approx(1.95, abs=0.15)
    assert 0.2 < black < wall


def test_colours_are_left_alone():
    frame = create_noisy(10)
    frame.u[:], frame.v[:] = 90, 200
    mark(frame)
    assert (frame.u == 90).all()
    assert (frame.v == 200).all()


def test_black_and_white_do_not_wrap():
    frame = create_frame(640, 360)
    frame.y[:180], frame.y[180:] = 0, 255
    mark(frame)
    assert frame.y[:180].max() <= 4
    assert frame.y[180:].min() >= 251


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (720, 1280), (426, 240), (322, 182)])
def test_after_a_cut_the_strength_is_right_within_nine_frames(size):
    """Part by part it becomes what it would have been at once, without seams."""
    fresh = mark(create_noisy(12, size=size), LumaMark(1, 2))
    rolling = LumaMark(1, 2)
    mark(create_frame(*size), rolling)
    changes = [mark(create_noisy(12, size=size), rolling) for _ in range(10)]
    assert np.std(changes[0]) < np.std(changes[4]) < np.std(changes[9])
    assert np.array_equal(changes[9], fresh)


def test_a_picture_unlike_the_last_one_can_have_all_of_it_at_once():
    rolling = LumaMark(1, 2)
    mark(create_frame(640, 360), rolling)
    one = mark(create_noisy(12, size=(640, 360)), rolling, anew=True)
    assert np.array_equal(one, mark(create_noisy(12, size=(640, 360)), LumaMark(1, 2)))


def test_it_stands_still_from_frame_to_frame():
    """A still picture stays still: no flicker, and nothing for the encoder to do."""
    one = LumaMark(1, 2)
    first = mark(create_noisy(8), one)
    assert all(np.array_equal(mark(create_noisy(8), one), first) for _ in range(10))


def test_a_change_of_size_is_followed():
    one = LumaMark(1, 2)
    for size in ((1280, 720), (640, 360), (1280, 720)):
        assert np.array_equal(
            mark(create_noisy(5, size=size), one), mark(create_noisy(5, size=size))
        )


@pytest.mark.parametrize("size", [(2, 2), (64, 48), (MIN_SIDE_PX - 2, 400)])
def test_what_is_too_small_stays_as_it_is(size):
    assert not mark(create_noisy(5, size=size)).any()
    assert mark(create_noisy(5, size=(400, MIN_SIDE_PX))).any()
