"""Pictures from outside: their kind and size are read before anything large is unpacked."""

from __future__ import annotations

import contextlib
import zlib
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from livefuse.errors import RefusedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PICTURE_BYTES: Final = 16 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000
MIN_SIDE_PX: Final = 64
MAX_SIDE_PX: Final = 2048
"""What is read is reduced to this: a face on a stream is smaller."""

_KINDS: Final = "PNG, JPEG or WebP"
_PNG: Final = b"\x89PNG\r\n\x1a\n"
# JPEG's frame headers, C0 to CF but for the tables (C4), JPG (C8) and arithmetic coding (CC).
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


def read_picture(data: bytes) -> NDArray[np.uint8]:
    """Return the picture as RGB uint8 (height, width, 3), upright, its long side <= 2048 px.

    Raises:
        RefusedError: it is no picture, too small, too large or damaged.
    """
    if len(data) > MAX_PICTURE_BYTES:
        raise RefusedError(
            f"the picture has {len(data) / 2**20:.0f} MiB, at most {MAX_PICTURE_BYTES >> 20} fit",
            hint="save it smaller",
        )
    size = measure_picture(data)
    if size is None:
        raise RefusedError(f"this is no {_KINDS} picture", hint=f"save it as {_KINDS}")
    width, height = size
    if min(size) < MIN_SIDE_PX or width * height > MAX_PIXELS:
        raise RefusedError(
            f"a picture of {width} x {height} px cannot be used",
            hint=f"its sides are to be {MIN_SIDE_PX} px or more, and {MAX_PIXELS // 10**6} "
            "megapixels at most",
        )
    return _shrink(_decode(data))


def measure_picture(data: bytes) -> tuple[int, int] | None:
    """Return width and height in px as the header tells, or None when it is no known picture."""
    if data.startswith(_PNG) and data[12:16] == b"IHDR":
        return _read_big(data, 16, 4), _read_big(data, 20, 4)
    if data.startswith(b"\xff\xd8\xff"):
        return _measure_jpeg(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _measure_webp(data)
    return None


def _decode(data: bytes) -> NDArray[np.uint8]:
    bgr = None
    # libpng writes what it thinks of a damaged file to standard error, past us: look first.
    if not data.startswith(_PNG) or _is_whole_png(data):
        with contextlib.suppress(cv2.error):
            bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if bgr is None:
        raise RefusedError("the picture is damaged", hint="open it and save it again")
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)  # type: ignore[return-value] # uint8 stays uint8


def _is_whole_png(data: bytes) -> bool:
    """Walk the chunks to the last one, each with its CRC (ISO 15948, section 5)."""
    at = len(_PNG)
    while at + 12 <= len(data):
        end = at + 8 + _read_big(data, at, 4)
        if end + 4 > len(data) or zlib.crc32(data[at + 4 : end]) != _read_big(data, end, 4):
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return True
        at = end + 4
    return False


def _shrink(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = rgb.shape[:2]
    scale = MAX_SIDE_PX / max(width, height)
    if scale >= 1.0:
        return rgb
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    return cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)  # type: ignore[return-value] # uint8 stays uint8


def _measure_jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the frame header (ISO 10918-1, annex B)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:  # noqa: PLR2004 - every marker begins so
        marker = data[at + 1]
        if marker in _JPEG_FRAMES:
            return _read_big(data, at + 7, 2), _read_big(data, at + 5, 2)
        if marker == 0xFF or marker in _JPEG_BARE:  # noqa: PLR2004 - a byte that fills
            at += 1 if marker == 0xFF else 2  # noqa: PLR2004 - as above
        else:
            at += 2 + max(_read_big(data, at + 2, 2), 2)
    return None


def _measure_webp(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk's header: lossy, lossless or extended."""
    chunk = data[12:16]
    if chunk == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _read_little(data, 26, 2) & 0x3FFF, _read_little(data, 28, 2) & 0x3FFF
    if chunk == b"VP8L":
        bits = _read_little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X":
        return _read_little(data, 24, 3) + 1, _read_little(data, 27, 3) + 1
    return None


def _read_big(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "big")


def _read_little(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "little")
