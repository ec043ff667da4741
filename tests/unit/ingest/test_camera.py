"""`camera:NAME` with files in the place of the driver: the opener is the seam."""

from __future__ import annotations

import errno
import threading
import time
from dataclasses import replace

import av
import numpy as np
import pytest

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import (
    IngestAuthError,
    IngestConnectError,
    IngestNotFoundError,
    IngestTimeoutError,
    IngestUnsupportedError,
)
from livefuse.frame import create_frame
from livefuse.ingest.camera import (
    Camera,
    CameraIngest,
    choose_formats,
    describe_camera_source,
    diagnose_camera_error,
    open_v4l2_source,
)
from livefuse.ingest.camera_trial import is_black
from livefuse.ingest.camera_v4l2 import CameraMode
from tests.sinks import CollectingSink

CONFIG = IngestConfig(
    open_timeout_ms=300, read_timeout_ms=1000, camera_size="320x180", reconnect_min_ms=50
)
WEBCAM = Camera(
    "Webcam",
    "/dev/video0",
    settings=(CameraMode("mjpeg", 320, 180, 30.0), CameraMode("yuyv422", 320, 180, 30.0)),
)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Two MJPEG films: `black` and `bright`."""
    folder = tmp_path_factory.mktemp("films")
    for name, level in (("black", 16), ("bright", 150)):
        with av.open(str(folder / f"{name}.mkv"), "w") as container:
            stream = container.add_stream("mjpeg", rate=30)
            stream.width, stream.height, stream.pix_fmt = 320, 180, "yuvj420p"
            for number in range(10):
                planes = np.full((270, 320), 128, np.uint8)
                planes[:180] = level if level == 16 else level + number
                frame = av.VideoFrame.from_ndarray(planes, format="yuvj420p")
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    return folder


class FakeDriver:
    """Opens a film for each pixel format; counts openings and those still open."""

    def __init__(self, films, gives, apart_s=0.02, packets=100_000):
        self.films, self.gives, self.apart_s, self.packets = films, gives, apart_s, packets
        self.opened, self.open_now = [], 0
        self.hung = threading.Event()

    def __call__(self, camera, pixel_format, config):
        assert self.open_now == 0, "a camera is for one at a time"
        self.opened.append(pixel_format)
        film = self.gives[pixel_format]
        if isinstance(film, Exception):
            raise diagnose_camera_error(film, camera)
        container = av.open(str(self.films / f"{film or 'bright'}.mkv"))
        self.open_now += 1
        source = describe_camera_source(container, camera, config)

        def close():
            self.open_now -= 1
            source.close()

        feed = self._feed(source.packets, is_dead=not film)
        return replace(source, packets=feed, close=close)

    def _feed(self, film, is_dead):
        packets = [packet for _, packet in film if packet.size]
        for number in range(self.packets):
            if is_dead:
                self.hung.wait(20)
                return
            packet = packets[number % len(packets)]
            packet.pts = packet.dts = number * 33
            yield True, packet
            time.sleep(self.apart_s)


def create(driver, config=CONFIG, cameras=(WEBCAM,), wanted="Webcam"):
    return CameraIngest(
        f"camera:{wanted}",
        config,
        SystemClock(),
        find_cameras=lambda: list(cameras),
        open_camera=driver,
    )


def test_pictures_come_and_the_device_is_released_on_stop(films):
    """C56."""
    driver = FakeDriver(films, {"mjpeg": "bright", "yuyv422": "bright"})
    ingest = create(driver)
    sink = CollectingSink(stop_after=25, ingest=ingest)
    ingest.run(sink)
    assert driver.opened == ["yuyv422"]
    assert driver.open_now == 0
    assert (sink.media.width, sink.media.height, sink.media.is_live) == (320, 180, True)
    assert sink.media.audio is None
    assert all(a < b for a, b in zip(sink.pts, sink.pts[1:], strict=False))
    assert sink.states[-1] == "ended"


def test_black_pictures_make_it_try_the_next_format(films):
    """C56."""
    driver = FakeDriver(films, {"yuyv422": "black", "mjpeg": "bright"})
    ingest = create(driver)
    sink = CollectingSink(stop_after=60, ingest=ingest)
    ingest.run(sink)
    assert driver.opened == ["yuyv422", "mjpeg"]
    assert sink.lumas[0] < 30 < sink.lumas[-1]


def test_black_in_all_formats_is_an_error_with_its_name(films):
    """C56."""
    driver = FakeDriver(films, {"yuyv422": "black", "mjpeg": "black"})
    with pytest.raises(IngestUnsupportedError, match="Webcam gives only black pictures") as caught:
        create(driver).run(CollectingSink())
    assert "yuyv422, mjpeg" in caught.value.hint
    assert driver.open_now == 0


def test_two_pictures_a_second_are_too_few(films):
    """C56."""
    driver = FakeDriver(films, {"yuyv422": "bright", "mjpeg": "bright"}, apart_s=0.5)
    with pytest.raises(IngestUnsupportedError, match=r"gives only [12]\.\d pictures a second"):
        create(driver).run(CollectingSink())
    assert driver.opened == ["yuyv422", "mjpeg"]


def test_no_picture_at_all_is_a_timeout_with_the_cameras_name(films):
    driver = FakeDriver(films, {"mjpeg": ""})
    only_mjpeg = Camera("Webcam", "/dev/video0", settings=WEBCAM.settings[:1])
    ingest = create(driver, cameras=[only_mjpeg])
    threading.Timer(0.6, driver.hung.set).start()
    with pytest.raises(IngestTimeoutError, match="Webcam gives no picture"):
        ingest.run(CollectingSink())
    assert driver.open_now == 0


def test_a_camera_that_goes_away_is_waited_for(films):
    driver = FakeDriver(films, {"yuyv422": "bright"}, packets=40)
    only_yuyv = Camera("Webcam", "/dev/video0", settings=WEBCAM.settings[1:])
    ingest = create(driver, cameras=[only_yuyv])
    sink = CollectingSink(stop_after=60, ingest=ingest)
    ingest.run(sink)
    assert driver.opened == ["yuyv422", "yuyv422"]
    assert sink.counts["reconnect"] == 1
    assert "lost" in sink.states
    assert all(a < b for a, b in zip(sink.pts, sink.pts[1:], strict=False))


def test_an_unknown_name_lists_the_choices():
    """C55."""
    ingest = create(None, wanted="C930", cameras=[WEBCAM, Camera("Integrated", "/dev/video2")])
    with pytest.raises(IngestNotFoundError) as caught:
        ingest.run(CollectingSink())
    assert "C930" in caught.value.message
    assert "camera:Webcam, camera:Integrated" in caught.value.hint


def test_no_camera_at_all_says_so():
    with pytest.raises(IngestNotFoundError, match="no camera was found at all"):
        create(None, cameras=[]).run(CollectingSink())


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EACCES, IngestAuthError, "group video"),
        (errno.EBUSY, IngestConnectError, "in use"),
        (errno.ENODEV, IngestNotFoundError, "gone"),
        (errno.EINVAL, IngestUnsupportedError, "cannot be opened"),
    ],
)
def test_each_refusal_has_its_own_error(films, number, kind, words):
    refusal = OSError(number, "no")
    driver = FakeDriver(films, {"yuyv422": refusal, "mjpeg": refusal})
    with pytest.raises(kind, match=words):
        create(driver).run(CollectingSink())


def test_ffmpegs_own_refusal_is_told_the_same_way():
    with pytest.raises(IngestNotFoundError, match="Webcam is gone"):
        open_v4l2_source(Camera("Webcam", "/dev/no-such-video"), "mjpeg", CONFIG)


def test_formats_that_reach_size_and_rate_come_first():
    modes = (
        CameraMode("yuyv422", 1280, 720, 10.0),
        CameraMode("mjpeg", 1280, 720, 30.0),
        CameraMode("XYZ1", 1280, 720, 60.0),
    )
    config = IngestConfig(camera_size="1280x720", camera_fps=30)
    assert choose_formats(Camera("c", "/dev/video0", settings=modes), config) == (
        "mjpeg",
        "yuyv422",
    )
    assert choose_formats(Camera("c", "/dev/video0"), config) == ("mjpeg", "yuyv422", "")


def test_a_dark_room_is_not_a_closed_shutter():
    frame = create_frame(64, 64)
    assert is_black(frame)
    frame.y[::16, ::32] = 30
    assert not is_black(frame)
