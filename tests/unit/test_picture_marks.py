"""What is generated is marked once, before it is encoded; what is not stays as it is."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from livefuse.clock import NS_PER_S
from livefuse.config import Config, HoldConfig
from livefuse.frame import FramePool
from livefuse.job.picture_out import PictureOut
from livefuse.mark_ids import number_job
from livefuse.publish.label_search import find_label
from livefuse.publish.luma.detect import LumaDetector
from livefuse.publish.mark_windows import take_mean
from livefuse.ring import Ring
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks
from livefuse.telemetry import Telemetry
from livefuse.virtual import Costs, TableCosts, VirtualClock
from tests.faces import read_picture

SIZE = (640, 360)


class Encoder:
    def __init__(self):
        self.shown = []

    def encode(self, frame):
        self.shown.append(frame.buffer.copy())
        return []

    def flush(self):
        return []


class FanOut:
    def show(self, frame):
        pass

    def send(self, packet):
        pass


def show(*, is_generated, hold="hold", until_s=0.0):
    """Return the picture that was put, and all that the encoder got until then."""
    clock = VirtualClock(TableCosts(Costs(costs_ms={"encode": 1.0})), start_ns=NS_PER_S)
    encoder, config = Encoder(), Config(hold=HoldConfig(show=hold))
    marks = JobMarks("studio", REPLAY_KEYS)
    parts: Any = (encoder, FanOut(), Telemetry(clock), config, marks, 1000 / 30)
    out, pool = PictureOut(*parts), FramePool(*SIZE, 3)
    ring: Ring[Any] = Ring(2, condition=clock.create_condition())
    frame = pool.acquire()
    assert frame is not None
    picture = cv2.resize(read_picture()[:288], SIZE)
    frame.buffer[:] = cv2.cvtColor(picture, cv2.COLOR_BGR2YUV_I420)
    frame.is_generated = is_generated
    before = frame.buffer.copy()

    def feed():
        ring.put(frame)
        clock.sleep_until(round((1 + until_s) * NS_PER_S))
        ring.close()

    clock.start("encode", lambda: out.run(ring, pool, may_hold=True))
    clock.start("feed", feed)
    clock.run_until_done()
    return before, encoder.shown


def read_number(buffer):
    found = LumaDetector(REPLAY_KEYS.luma_key).find(take_mean([buffer[: SIZE[1]]]))
    return found.number if found is not None else None


def test_a_generated_picture_carries_the_number_and_the_label():
    before, (shown,) = show(is_generated=True)
    assert read_number(shown) == number_job("studio")
    assert find_label(shown[: SIZE[1]]).is_label
    change = shown[: SIZE[1]].astype(int) - before[: SIZE[1]]
    assert np.median(np.abs(change)) <= 3


def test_a_picture_that_was_not_generated_is_not_touched():
    before, (shown,) = show(is_generated=False)
    assert np.array_equal(before, shown)


def test_a_held_picture_is_not_marked_twice():
    """Its mark would grow with every repetition."""
    _, shown = show(is_generated=True, until_s=4.0)
    assert len(shown) > 10
    assert all(np.array_equal(shown[0], other) for other in shown[1:])


@pytest.mark.parametrize("hold", ["blur", "slate"])
def test_a_held_picture_that_was_covered_has_its_marks_again(hold):
    _, shown = show(is_generated=True, hold=hold, until_s=3.0)
    covered = shown[-1]
    assert not np.array_equal(covered, shown[0])
    assert np.array_equal(covered, shown[-2])
    assert read_number(covered) == number_job("studio")
    assert find_label(covered[: SIZE[1]]).is_label
