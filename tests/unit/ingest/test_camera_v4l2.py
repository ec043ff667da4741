"""The cameras of a made-up machine: a sysfs tree in a folder, ioctls answered from a table."""

from __future__ import annotations

import errno
import struct

import pytest

from livefuse.ingest.camera_v4l2 import (
    BUF_TYPE_VIDEO_CAPTURE,
    CAP_DEVICE_CAPS,
    CAP_VIDEO_CAPTURE,
    VIDIOC_ENUM_FMT,
    VIDIOC_ENUM_FRAMEINTERVALS,
    VIDIOC_ENUM_FRAMESIZES,
    VIDIOC_QUERYCAP,
    find_camera,
    list_cameras,
)

METADATA_CAPTURE = 0x00800000
VIDEO_OUTPUT = 0x2
MODES = {
    "MJPG": {(1280, 720): [30, 15], (1920, 1080): [30]},
    "YUYV": {(640, 480): [30], (1280, 720): [10]},
}


def code_of(letters):
    return int.from_bytes(letters.encode(), "little")


class FakeDevice:
    """Answers as the kernel does: fills the caller's structure, EINVAL behind a list's end."""

    def __init__(self, caps=CAP_VIDEO_CAPTURE, modes=MODES, stepwise=False):
        self.caps, self.modes, self.stepwise = caps, modes, stepwise
        self.is_closed = False

    def close(self):
        self.is_closed = True

    def ask(self, request, data):
        answers = {
            VIDIOC_QUERYCAP: self._caps,
            VIDIOC_ENUM_FMT: self._format,
            VIDIOC_ENUM_FRAMESIZES: self._size,
            VIDIOC_ENUM_FRAMEINTERVALS: self._interval,
        }
        assert len(data) == request >> 16 & 0x3FFF, "the size that the request's number says"
        try:
            answers[request](data)
        except (IndexError, KeyError):
            raise OSError(errno.EINVAL, "Invalid argument") from None

    def _caps(self, data):
        # All nodes of one device tell the same capabilities; those of the node stand behind.
        everything = CAP_VIDEO_CAPTURE | METADATA_CAPTURE | CAP_DEVICE_CAPS
        struct.pack_into("3I", data, 80, 0x060000, everything, self.caps)

    def _format(self, data):
        index, kind = struct.unpack_from("2I", data, 0)
        assert kind == BUF_TYPE_VIDEO_CAPTURE
        letters = list(self.modes)[index]
        struct.pack_into("I", data, 44, code_of(letters))

    def _find(self, code):
        return next(sizes for letters, sizes in self.modes.items() if code_of(letters) == code)

    def _size(self, data):
        index, code = struct.unpack_from("2I", data, 0)
        if self.stepwise:
            if index:
                raise IndexError
            struct.pack_into("7I", data, 8, 3, 32, 1920, 2, 32, 1080, 2)
            return
        struct.pack_into("3I", data, 8, 1, *list(self._find(code))[index])

    def _interval(self, data):
        index, code, width, height = struct.unpack_from("4I", data, 0)
        rates = [30] if self.stepwise else self._find(code)[width, height]
        struct.pack_into("3I", data, 16, 1, 1, rates[index])


@pytest.fixture
def machine(tmp_path):
    """Return a function that plugs devices in: number -> (name, fake or error)."""

    def plug(devices, links=()):
        sys_root, dev_root = tmp_path / "sys", tmp_path / "dev"
        by_id = dev_root / "v4l" / "by-id"
        by_id.mkdir(parents=True)
        for number, (name, _) in devices.items():
            node = sys_root / f"video{number}"
            node.mkdir(parents=True)
            (node / "name").write_text(f"{name}\n")
            (node / "index").write_text("0\n")
            (dev_root / f"video{number}").touch()
        for link, number in links:
            (by_id / link).symlink_to(dev_root / f"video{number}")

        def open_device(path):
            device = devices[int(path.rpartition("video")[2])][1]
            if isinstance(device, OSError):
                raise device
            return device

        return list_cameras(sys_root, dev_root, open_device)

    return plug


def test_cameras_are_listed_with_their_modes(machine):
    device = FakeDevice()
    (camera,) = machine({0: ("HD Webcam", device)})
    assert camera.name == "HD Webcam"
    assert camera.device.endswith("/dev/video0")
    assert camera.modes == (
        "mjpeg 1280x720@30",
        "mjpeg 1920x1080@30",
        "yuyv422 640x480@30",
        "yuyv422 1280x720@10",
    )
    assert device.is_closed


def test_only_what_captures_pictures_is_a_camera(machine):
    found = machine(
        {
            0: ("Webcam", FakeDevice()),
            1: ("Webcam", FakeDevice(caps=METADATA_CAPTURE)),
            2: ("OBS Virtual Camera", FakeDevice(caps=VIDEO_OUTPUT)),
            3: ("broken", OSError(errno.ENODEV, "No such device")),
        }
    )
    assert [camera.name for camera in found] == ["Webcam"]


def test_equal_names_and_order_are_stable(machine):
    """C55."""
    found = machine({n: ("Webcam", FakeDevice()) for n in (10, 2, 0)})
    assert [(c.name, c.device.rpartition("/")[2]) for c in found] == [
        ("Webcam", "video0"),
        ("Webcam #2", "video2"),
        ("Webcam #3", "video10"),
    ]


def test_a_camera_that_may_not_be_opened_is_listed_without_modes(machine):
    (camera,) = machine({0: ("Private", PermissionError(errno.EACCES, "Permission denied"))})
    assert (camera.name, camera.modes) == ("Private", ())


def test_any_size_within_bounds_gives_the_largest(machine):
    (camera,) = machine({0: ("Grabber", FakeDevice(stepwise=True, modes={"XYZ1": {}}))})
    assert camera.modes == ("XYZ1 1920x1080@30",)


def test_a_camera_is_found_by_any_of_its_names(machine):
    """C55."""
    found = machine(
        {0: ("HD Pro Webcam C920", FakeDevice()), 2: ("Integrated Camera", FakeDevice())},
        links=[("usb-046d_C920_123-video-index0", 0)],
    )
    first, second = found
    assert first.aliases == ("usb-046d_C920_123-video-index0",)
    assert find_camera("usb-046d_C920_123-video-index0", found) is first
    assert find_camera("hd pro webcam c920", found) is first
    assert find_camera("c920", found) is first
    assert find_camera(second.device, found) is second
    assert find_camera("video2", found) is second
    assert find_camera("", found) is first
    assert find_camera("cam", found) is None, "two cameras have it in their names"
    assert find_camera("C930", found) is None


def test_a_machine_without_v4l2_has_no_cameras(tmp_path):
    assert list_cameras(tmp_path / "nothing", tmp_path) == []
