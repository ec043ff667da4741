"""The virtual camera, with a fake of pyvirtualcam at the seam (C04, C57)."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from livefuse.clock import NS_PER_S, ManualClock
from livefuse.frame import create_frame
from livefuse.publish.backoff import Backoff
from livefuse.publish.virtualcam import VirtualCameraOutput


class FakeCamera:
    """Takes frames only when the gate is open."""

    def __init__(self, gate):
        self.device = "/dev/video9"
        self.gate = gate
        self.frames = []
        self.options = {}

    def __call__(self, **options):
        self.options = options
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True

    def send(self, frame):
        self.gate.wait(5)
        self.frames.append(frame.copy())


def _wait(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _make(gate):
    camera = FakeCamera(gate)
    module = SimpleNamespace(Camera=camera, PixelFormat=SimpleNamespace(I420="I420"))
    return camera, VirtualCameraOutput("", lambda: module)


def test_pictures_arrive_as_they_are():
    gate = threading.Event()
    gate.set()
    camera, output = _make(gate)
    frame = create_frame(64, 32)
    frame.buffer[:] = np.arange(frame.buffer.size, dtype=np.uint8).reshape(frame.buffer.shape)
    wanted = frame.buffer.reshape(-1).copy()
    output.show(frame)
    frame.buffer[:] = 0
    _wait(lambda: camera.frames)
    assert np.array_equal(camera.frames[0], wanted)
    assert (camera.options["width"], camera.options["height"]) == (64, 32)
    status = output.status()
    assert (status.state, status.connected) == ("live", True)
    assert "/dev/video9" in status.watch
    output.close(2)
    assert camera.closed
    assert output.status().state == "closed"


def test_a_slow_camera_gets_the_newest_and_nobody_waits():
    gate = threading.Event()
    camera, output = _make(gate)
    frame = create_frame(64, 32)
    began = time.monotonic()
    for index in range(30):
        frame.buffer[:] = index
        output.show(frame)
        if index == 0:
            _wait(lambda: output._waiting is None)  # it is with the camera now
    assert time.monotonic() - began < 3
    gate.set()
    _wait(lambda: len(camera.frames) == 2)
    assert [int(f[0]) for f in camera.frames] == [0, 29]
    assert output.status().dropped == 28
    output.close(2)


def test_a_camera_that_hangs_is_called_stalled_until_it_goes_on():
    """(C04) What waits is one picture, however long it lasts."""
    gate, clock = threading.Event(), ManualClock()
    camera = FakeCamera(gate)
    module = SimpleNamespace(Camera=camera, PixelFormat=SimpleNamespace(I420="I420"))
    output = VirtualCameraOutput("", lambda: module, clock=clock)
    frame = create_frame(64, 32)
    output.show(frame)
    _wait(lambda: output.status().state == "live")
    clock.advance(3 * NS_PER_S)
    for _ in range(5):
        output.show(frame)
    assert output.status().state == "stalled"
    assert "takes no more pictures" in output.status().error
    gate.set()
    _wait(lambda: output.status().state == "live")
    assert output.status().error == ""
    output.close(2)


def test_a_camera_that_goes_away_is_looked_for_again():
    gate = threading.Event()
    gate.set()

    class Unplugged(FakeCamera):
        is_gone = False

        def send(self, frame):
            if self.is_gone:
                raise RuntimeError("device closed")
            super().send(frame)

        def __call__(self, **options):
            if self.is_gone:
                raise RuntimeError("No v4l2 loopback device found")
            return super().__call__(**options)

    camera = Unplugged(gate)
    module = SimpleNamespace(Camera=camera, PixelFormat=SimpleNamespace(I420="I420"))
    output = VirtualCameraOutput("", lambda: module, backoff=Backoff(10, 20))
    frame = create_frame(64, 32)
    output.show(frame)
    _wait(lambda: camera.frames)
    camera.is_gone = True

    def show_until(condition):
        def check():
            output.show(frame)
            return condition()

        _wait(check)

    show_until(lambda: "looked for again" in output.status().error)
    show_until(lambda: "v4l2loopback" in output.status().error)
    assert not output.status().connected
    camera.is_gone = False
    show_until(lambda: output.status().state == "live")
    assert output.status().reconnects == 1
    assert output.status().error == ""
    output.close(2)
    assert output.status().state == "closed"


def _raise(error):
    raise error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("pyvirtualcam"), "pip install"),
        (RuntimeError("No v4l2 loopback device found"), "v4l2loopback"),
    ],
)
def test_what_is_missing_is_a_warning_that_says_how_to_get_it(error, words):
    output = VirtualCameraOutput("", lambda: _raise(error))
    output.show(create_frame(64, 32))
    _wait(lambda: output.status().state == "refused")
    assert words in output.status().error
    assert not output.status().connected
    output.show(create_frame(64, 32))
    output.close(2)
