"""Encoded noise to be damaged: any picture that is not exact differs at once."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, cast

import av
import numpy as np

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

SIZE = (160, 96)


class Encoded(NamedTuple):
    """Packets in decoding order, and what FFmpeg gives for each when nothing is lost."""

    packets: list[bytes]
    extradata: bytes
    keys: list[bool]


@cache
def encode_noise(  # noqa: PLR0913 - each is a choice of some test, with a default
    codec: str = "libx264",
    *,
    frames: int = 60,
    gop: int = 20,
    size: tuple[int, int] = SIZE,
    is_global: bool = False,
    parameters: str = "",
    full_range: bool = False,
) -> Encoded:
    """Return moving noise, a keyframe each `gop`, without B-frames.

    `is_global` puts the parameter sets beside the packets, as FLV and MP4 do.
    """
    context = cast("VideoCodecContext", av.CodecContext.create(codec, "w"))
    context.width, context.height = size
    context.pix_fmt, context.time_base = "yuv420p", Fraction(1, 30)
    context.framerate = Fraction(30)
    if full_range:
        context.color_range = 2
    if is_global:
        context.flags |= av.codec.context.Flags.global_header
    name = "x264-params" if codec == "libx264" else "x265-params"
    quiet = "" if codec == "libx264" else "log-level=none:pools=none:bframes=0:scenecut=0:"
    context.options = {
        "preset": "ultrafast", "bf": "0", "g": str(gop), "tune": "zerolatency",
        name: f"{quiet}keyint={gop}:min-keyint={gop}{':' if parameters else ''}{parameters}",
    }  # fmt: skip
    noise = np.random.default_rng(1).integers(0, 90, (size[1], size[0], 3), dtype=np.uint8)
    packets = []
    for index in range(frames):
        picture = np.roll(noise, index * 3, 1) + np.uint8(index % 90)
        frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format="yuv420p")
        frame.pts, frame.time_base = index, Fraction(1, 30)
        packets += context.encode(frame)
    packets += context.encode(None)
    return Encoded(
        [bytes(packet) for packet in packets],
        context.extradata or b"",
        [packet.is_keyframe for packet in packets],
    )


def cut(data: bytes, start: float = 0.4, end: float = 0.6) -> bytes:
    """Return `data` without what lies between these shares of it: packets of it were lost."""
    return data[: int(len(data) * start)] + data[int(len(data) * end) :]
