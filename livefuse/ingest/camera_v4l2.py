"""Which cameras this machine has and what they can do, asked of the Linux kernel (V4L2).

Numbers and layouts: linux/videodev2.h. Everything is read only; no camera starts because of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SYS_ROOT: Final = Path("/sys/class/video4linux")
DEV_ROOT: Final = Path("/dev")

VIDIOC_QUERYCAP: Final = 0x80685600
VIDIOC_ENUM_FMT: Final = 0xC0405602
VIDIOC_ENUM_FRAMESIZES: Final = 0xC02C564A
VIDIOC_ENUM_FRAMEINTERVALS: Final = 0xC034564B
CAP_VIDEO_CAPTURE: Final = 0x1
CAP_DEVICE_CAPS: Final = 0x80000000
BUF_TYPE_VIDEO_CAPTURE: Final = 1
DISCRETE: Final = 1

_CAPABILITY: Final = struct.Struct("16s32s32s3I12x")
_FMTDESC: Final = struct.Struct("3I32sI16x")
_FRAMESIZE: Final = struct.Struct("3I6I8x")
_FRAMEINTERVAL: Final = struct.Struct("5I6I8x")
_MAX_ENTRIES: Final = 64
# What FFmpeg calls the pixel formats.
FORMATS: Final = {
    "YUYV": "yuyv422",
    "MJPG": "mjpeg",
    "JPEG": "mjpeg",
    "H264": "h264",
    "NV12": "nv12",
    "YU12": "yuv420p",
    "UYVY": "uyvy422",
    "GREY": "gray",
    "RGB3": "rgb24",
    "BGR3": "bgr24",
}


class Device(Protocol):
    """An opened video device."""

    def ask(self, request: int, data: bytearray) -> None:
        """Send an ioctl that reads and fills `data`; raises OSError when it is refused."""
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...


class CameraMode(NamedTuple):
    """One way to run a camera. `pixel_format` is FFmpeg's name, else the driver's four letters.

    `fps` is the highest; 0 when the driver does not tell.
    """

    pixel_format: str
    width: int
    height: int
    fps: float

    def __str__(self) -> str:
        rate = f"@{self.fps:g}" if self.fps else ""
        return f"{self.pixel_format} {self.width}x{self.height}{rate}"


@dataclass(slots=True, frozen=True)
class Camera:
    """A capture device: its stable name, where it is now, other names, and its modes."""

    name: str
    device: str
    aliases: tuple[str, ...] = ()
    settings: tuple[CameraMode, ...] = ()

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes as words, for people: `mjpeg 1280x720@30`."""
        return tuple(map(str, self.settings))


class _V4l2Device:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def ask(self, request: int, data: bytearray) -> None:
        fcntl.ioctl(self._fd, request, data)

    def close(self) -> None:
        os.close(self._fd)


def list_cameras(
    sys_root: Path = SYS_ROOT,
    dev_root: Path = DEV_ROOT,
    open_device: Callable[[str], Device] = _V4l2Device,
) -> list[Camera]:
    """Return the capture devices in the order of their numbers; none where there is no V4L2.

    Equal names are told apart by their order: `Webcam`, `Webcam #2`.
    """
    links = _read_links(dev_root / "v4l" / "by-id")
    cameras = []
    for entry in sorted(_list_folder(sys_root), key=_get_number):
        device = dev_root / entry.name
        settings = _inspect(str(device), _read_text(entry / "index"), open_device)
        if settings is not None:
            name = _read_text(entry / "name") or entry.name
            aliases = tuple(sorted(links.get(entry.name, ())))
            cameras.append(Camera(name, str(device), aliases, settings))
    return _tell_apart(cameras)


def find_camera(wanted: str, cameras: list[Camera]) -> Camera | None:
    """Return the camera that `wanted` names; nothing at all means the first one.

    It may be the name, the by-id name, the device, or a part of the name that only one camera has.
    """
    if not wanted:
        return cameras[0] if cameras else None
    folded = wanted.casefold()
    for camera in cameras:
        names = (camera.name, camera.device, Path(camera.device).name, *camera.aliases)
        if folded in [name.casefold() for name in names]:
            return camera
    partly = [camera for camera in cameras if folded in camera.name.casefold()]
    return partly[0] if len(partly) == 1 else None


def _inspect(
    path: str, index: str, open_device: Callable[[str], Device]
) -> tuple[CameraMode, ...] | None:
    """Return the modes of a capture device, None for anything else.

    A camera that we may not open is listed without modes: opening it later says why.
    """
    try:
        device = open_device(path)
    except PermissionError:
        return () if index in ("", "0") else None
    except OSError:
        return None
    try:
        if not _is_capture(device):
            return None
        return tuple(_list_modes(device))
    except OSError:
        return None
    finally:
        device.close()


def _is_capture(device: Device) -> bool:
    data = bytearray(_CAPABILITY.size)
    device.ask(VIDIOC_QUERYCAP, data)
    capabilities, of_node = _CAPABILITY.unpack(data)[4:6]
    has_own = capabilities & CAP_DEVICE_CAPS
    return bool((of_node if has_own else capabilities) & CAP_VIDEO_CAPTURE)


def _list_modes(device: Device) -> Iterator[CameraMode]:
    for index in range(_MAX_ENTRIES):
        data = bytearray(_FMTDESC.pack(index, BUF_TYPE_VIDEO_CAPTURE, 0, b"", 0))
        if not _ask(device, VIDIOC_ENUM_FMT, data):
            return
        code = _FMTDESC.unpack(data)[4]
        letters = code.to_bytes(4, "little").decode("ascii", "replace").strip()
        for width, height in _list_sizes(device, code):
            fps = _find_highest_fps(device, code, width, height)
            yield CameraMode(FORMATS.get(letters, letters), width, height, fps)


def _list_sizes(device: Device, code: int) -> Iterator[tuple[int, int]]:
    for index in range(_MAX_ENTRIES):
        data = bytearray(_FRAMESIZE.pack(index, code, 0, *[0] * 6))
        if not _ask(device, VIDIOC_ENUM_FRAMESIZES, data):
            return
        fields = _FRAMESIZE.unpack(data)
        if fields[2] != DISCRETE:
            # Any size within bounds: min and max width and step, then height's.
            yield (fields[4], fields[7])
            return
        yield (fields[3], fields[4])


def _find_highest_fps(device: Device, code: int, width: int, height: int) -> float:
    highest = 0.0
    for index in range(_MAX_ENTRIES):
        data = bytearray(_FRAMEINTERVAL.pack(index, code, width, height, 0, *[0] * 6))
        if not _ask(device, VIDIOC_ENUM_FRAMEINTERVALS, data):
            break
        # The interval is a fraction of a second; the shortest comes first where any is possible.
        numerator, denominator = _FRAMEINTERVAL.unpack(data)[5:7]
        highest = max(highest, denominator / numerator if numerator else 0.0)
    return round(highest, 2)


def _ask(device: Device, request: int, data: bytearray) -> bool:
    """Send `request`; False at the end of a list (EINVAL) or where it is not known (ENOTTY)."""
    try:
        device.ask(request, data)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTTY):
            return False
        raise
    return True


def _list_folder(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _get_number(path: Path) -> tuple[int, str]:
    digits = "".join(filter(str.isdigit, path.name))
    return (int(digits or 0), path.name)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _read_links(folder: Path) -> dict[str, list[str]]:
    links: dict[str, list[str]] = {}
    for link in _list_folder(folder):
        links.setdefault(link.resolve().name, []).append(link.name)
    return links


def _tell_apart(cameras: list[Camera]) -> list[Camera]:
    seen: Counter[str] = Counter()
    told = []
    for camera in cameras:
        seen[camera.name] += 1
        count = seen[camera.name]
        told.append(camera if count == 1 else replace(camera, name=f"{camera.name} #{count}"))
    return told
