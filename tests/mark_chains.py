"""What happens to a stream on its way: encoded, scaled, cut, encoded again."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import cv2
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Buffers = list[NDArray[np.uint8]]

FPS = 30
LIVE = {"preset": "veryfast", "tune": "zerolatency"}
FILE = {"preset": "veryfast"}


def encode(buffers: Iterable[NDArray[np.uint8]], kbps: int, options: dict[str, str]) -> list[Any]:
    """Return I420 pictures as packets of H.264."""
    encoder: Any = None
    packets: list[Any] = []
    for index, buffer in enumerate(buffers):
        if encoder is None:
            encoder = av.CodecContext.create("libx264", "w")
            encoder.width, encoder.height = buffer.shape[1], buffer.shape[0] * 2 // 3
            encoder.pix_fmt, encoder.bit_rate = "yuv420p", kbps * 1000
            encoder.time_base, encoder.framerate = Fraction(1, FPS), Fraction(FPS)
            encoder.thread_count = 1
            limits = {"maxrate": f"{kbps}k", "bufsize": f"{kbps}k", "g": "60"}
            encoder.options = limits | options
        picture = av.VideoFrame.from_ndarray(buffer, format="yuv420p")
        picture.pts, picture.time_base = index, Fraction(1, FPS)
        packets += encoder.encode(picture)
    return [*packets, *encoder.encode(None)]


def decode(packets: Iterable[Any]) -> Buffers:
    """Return the pictures of H.264 packets."""
    decoder: Any = av.CodecContext.create("h264", "r")
    decoder.thread_count = 1
    frames = [frame for packet in packets for frame in decoder.decode(packet)]
    return [frame.to_ndarray(format="yuv420p") for frame in [*frames, *decoder.decode(None)]]


def send_through(buffers: Buffers, kbps: int, options: dict[str, str]) -> Buffers:
    """Encode and decode."""
    return decode(encode(buffers, kbps, options))


def scale(buffer: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return an I420 picture at another size."""
    return _map(
        buffer, size, lambda plane, target: cv2.resize(plane, target, interpolation=cv2.INTER_AREA)
    )


def cut(buffer: NDArray[np.uint8], box: tuple[int, int, int, int]) -> NDArray[np.uint8]:
    """Return the part (x, y, width, height), all even, of an I420 picture."""
    x, y, width, height = box

    def take(plane: NDArray[np.uint8], target: tuple[int, int]) -> NDArray[np.uint8]:
        half = width // target[0]
        return plane[y // half : (y + height) // half, x // half : (x + width) // half]

    return _map(buffer, (width, height), take)


def get_size(buffer: NDArray[np.uint8]) -> tuple[int, int]:
    """Return width and height of an I420 picture."""
    return buffer.shape[1], buffer.shape[0] * 2 // 3


def get_luma(buffer: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the luma of an I420 picture."""
    return buffer[: buffer.shape[0] * 2 // 3]


def _map(
    buffer: NDArray[np.uint8],
    size: tuple[int, int],
    change: Callable[[NDArray[np.uint8], tuple[int, int]], Any],
) -> NDArray[np.uint8]:
    width, height = get_size(buffer)
    flat = buffer.reshape(-1)
    luma, chroma = width * height, width * height // 4
    half = (size[0] // 2, size[1] // 2)
    planes = (
        change(buffer[:height], size),
        change(flat[luma : luma + chroma].reshape(height // 2, width // 2), half),
        change(flat[luma + chroma :].reshape(height // 2, width // 2), half),
    )
    joined = np.concatenate([np.ascontiguousarray(plane).reshape(-1) for plane in planes])
    return joined.reshape(size[1] * 3 // 2, size[0])


# Each takes what left as a stream of 1 Mb/s.


def pass_on(buffers: Buffers) -> Buffers:
    """As it left."""
    return buffers


def shrink_and_grow(buffers: Buffers) -> Buffers:
    """To two thirds, encoded there at 800 kb/s, and back: 720 -> 480 -> 720."""
    width, height = get_size(buffers[0])
    small = (width * 2 // 3 // 2 * 2, height * 2 // 3 // 2 * 2)
    smaller = send_through([scale(buffer, small) for buffer in buffers], 800, FILE)
    return [scale(buffer, (width, height)) for buffer in smaller]


def crop(buffers: Buffers) -> Buffers:
    """A tenth of each side goes, at no round place; scaled up again, and encoded again."""
    width, height = get_size(buffers[0])
    x, y = (74, 42) if width > height else (42, 74)
    box = (x, y, width * 9 // 10 // 2 * 2, height * 9 // 10 // 2 * 2)
    parts = [scale(cut(buffer, box), (width, height)) for buffer in buffers]
    return send_through(parts, 1000, FILE)


def encode_again(buffers: Buffers) -> Buffers:
    """A second encode at the same rate."""
    return send_through(buffers, 1000, FILE)


CHAINS: dict[str, Callable[[Buffers], Buffers]] = {
    "x264_1mbps": pass_on,
    "720_480_720": shrink_and_grow,
    "crop_10": crop,
    "second_encode": encode_again,
}
