"""The invisible mark is found after what platforms do to it, and never where there is none.

`scripts/bench mark_found mark_false` does the same at length; here are the worst scenes of it.
"""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.frame import create_frame
from livefuse.publish.luma.detect import LumaDetector, fold_at_scales
from livefuse.publish.luma.embed import LumaMark
from livefuse.publish.mark_windows import take_mean
from tests.mark_chains import CHAINS, LIVE, get_luma, send_through
from tests.mark_scenes import SCENES, list_frames, show_still

KEY, NUMBER = 77, 0x51DEBA11
FRAMES = 16
DETECTOR = LumaDetector(KEY)
WORST = ("still_face", "bars_noise")


@cache
def send(name, *, number=NUMBER):
    """Return the scene's pictures as they leave, marked unless `number` is None."""
    frames = list_frames(SCENES[name], FRAMES)
    mark = LumaMark(KEY, number) if number is not None else None
    for frame in frames:
        if mark is not None:
            mark.draw(frame)
    return send_through([frame.buffer for frame in frames], 1000, LIVE)


def mean_of(buffers):
    return take_mean(get_luma(buffer) for buffer in buffers)


def find(luma):
    return DETECTOR.find(take_mean([np.clip(np.rint(luma), 0, 255).astype(np.uint8)]))


def mark_still(size, number=NUMBER, key=KEY):
    (frame,) = list_frames(show_still("astronaut", size), 1)
    LumaMark(key, number).draw(frame)
    return frame.y


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("scene", WORST)
def test_the_number_survives(scene, chain):
    """(R51) H.264 at 1 Mb/s, scaled down and up, cropped, encoded again."""
    found = DETECTOR.find(mean_of(CHAINS[chain](send(scene))))
    assert found is not None
    assert found.number == NUMBER
    assert found.score > 13
    assert found.scale == pytest.approx(1 / 0.9 if chain == "crop_10" else 1, rel=0.01)


@pytest.mark.parametrize("scene", WORST)
def test_another_key_finds_nothing(scene):
    assert LumaDetector(KEY + 1).find(mean_of(send(scene))) is None


@pytest.mark.parametrize("scene", [*WORST, "text_white"])
def test_where_there_is_no_mark_none_is_found(scene):
    mean = mean_of(send(scene, number=None))
    folded = list(fold_at_scales(mean))
    for key in range(4):
        assert LumaDetector(key).find_in(mean, folded) is None


def test_text_that_scrolls_does_not_take_it_along():
    """What an encoder moves with the text is lost; what it renews is there for two seconds."""
    frames = list_frames(SCENES["text_dense_black"], 60)
    mark = LumaMark(KEY, NUMBER)
    for frame in frames:
        mark.draw(frame)
    sent = send_through([frame.buffer for frame in frames], 1000, LIVE)
    found = DETECTOR.find(mean_of(CHAINS["720_480_720"](sent)))
    assert found is not None
    assert found.number == NUMBER
    assert found.score > 12


def test_each_job_has_its_own_number():
    found = DETECTOR.find(mean_of(send("still_face", number=NUMBER ^ 1)))
    assert found is not None
    assert found.number == NUMBER ^ 1


def test_two_marks_in_one_window_give_no_third_number():
    """A cut between two jobs: one of them is told, or none."""
    one, other = mark_still((1280, 720), 5), mark_still((1280, 720), 6_000_000)
    found = DETECTOR.find(take_mean([one, other]))
    assert found is None or found.number in (5, 6_000_000)


@pytest.mark.parametrize(
    "size", [(1280, 720), (720, 1280), (1920, 1080), (854, 480), (640, 360), (320, 180), (256, 144)]
)
def test_all_sizes_carry_it(size):
    found = find(mark_still(size))
    assert found is not None
    assert found.number == NUMBER


def test_a_mirror_does_not_hide_it():
    found = find(mark_still((1280, 720))[:, ::-1])
    assert found is not None
    assert (found.number, found.is_mirrored) == (NUMBER, True)


@pytest.mark.parametrize(
    ("name", "change"),
    {
        "upright part": lambda y: y[:, 438:842],
        "quarter": lambda y: y[180:540, 320:960],
        "small in a corner": lambda y: np.pad(cv2.resize(y, (640, 360)), ((0, 360), (640, 0))),
        "letterbox": lambda y: np.pad(cv2.resize(y, (960, 540)), ((90, 90), (160, 160))),
        "grown": lambda y: cv2.resize(y, (1920, 1080)),
        "darker": lambda y: 255 * (y / 255) ** 1.4,
        "blurred": lambda y: cv2.GaussianBlur(y, (0, 0), 2),
        "half covered": lambda y: np.where(np.arange(1280) < 640, y, 40.0),
    }.items(),
)
def test_it_stays_when_the_picture_is_changed(name, change):
    found = find(change(mark_still((1280, 720)).astype(np.float32)))
    assert found is not None, name
    assert found.number == NUMBER


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 255))
@settings(max_examples=25, deadline=None)
def test_any_number_is_read_from_any_place(number, down, across):
    frame = create_frame(1280, 720)
    frame.y[:] = 118 + np.random.default_rng(1).integers(0, 20, frame.y.shape)
    LumaMark(KEY, number).draw(frame)
    found = DETECTOR.find(take_mean([frame.y[down:, across:]]), [720 / (720 - down)])
    assert found is not None
    assert found.number == number


@pytest.mark.parametrize("shape", [(16, 16), (2, 9000), (9000, 2), (100, 9000), (144, 256)])
def test_empty_and_odd_pictures_hold_nothing(shape):
    for luma in (0, 128):
        assert find(np.full(shape, luma)) is None
