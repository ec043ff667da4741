"""The picture that is shown now, as JPEG, for whoever asks. Costs nothing while nobody does."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import av
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livefuse.frame import Colour, Frame

_SPACES: Final = {"bt601": Colorspace.ITU601, "bt709": Colorspace.ITU709}


class Snapshot:
    """Keeps a copy of the next picture that is shown once somebody waits for it. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = 0
        self._turn = 0
        self._picture: tuple[NDArray[np.uint8], Colour] | None = None

    def show(self, frame: Frame) -> None:
        """Copy `frame` if it is waited for; from the encode thread, marks and all."""
        if not self._waiting:
            return
        frame.fill_planes()
        with self._changed:
            self._picture = frame.buffer.copy(), frame.colour
            self._turn += 1
            self._changed.notify_all()

    def take(self, timeout_s: float) -> bytes | None:
        """Return the next picture as JPEG, or None when none is shown within `timeout_s`."""
        with self._changed:
            turn = self._turn
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._turn != turn, timeout_s)
                picture = self._picture if self._turn != turn else None
            finally:
                self._waiting -= 1
        return encode_jpeg(*picture) if picture is not None else None


def encode_jpeg(buffer: NDArray[np.uint8], colour: Colour) -> bytes:
    """Return the I420 picture `buffer`, uint8 (height * 3 / 2, width), as JPEG (full range 601)."""
    height, width = buffer.shape[0] * 2 // 3, buffer.shape[1]
    picture = VideoFrame.from_ndarray(buffer, format="yuv420p")
    picture.colorspace = _SPACES[colour.matrix]
    picture.color_range = ColorRange.JPEG if colour.full_range else ColorRange.MPEG
    full = picture.reformat(
        format="yuvj420p",
        src_colorspace=_SPACES[colour.matrix],
        dst_colorspace=Colorspace.ITU601,
        src_color_range=picture.color_range,
        dst_color_range=ColorRange.JPEG,
    )
    encoder = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuvj420p"
    encoder.time_base = Fraction(1, 90_000)
    encoder.options = {"qmin": "3", "qmax": "3"}
    packets = [*encoder.encode(full), *encoder.encode(None)]
    return b"".join(bytes(packet) for packet in packets)
