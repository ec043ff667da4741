"""Recordings made in memory: real H.264, times of arrival as a test wants them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import numpy as np
from av.codec.context import CodecContext

from livefuse.clock import NS_PER_S
from livefuse.config import IngestConfig
from livefuse.ingest.reader import Item
from livefuse.ingest.source import Source, set_up_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from livefuse.ingest.playback import Entry

FPS = 30
WIDTH, HEIGHT = 160, 96
_BASE = Fraction(1, 90_000)
_STEP = 90_000 // FPS


@dataclass
class MadeRecording:
    """A `Recorded` whose entries are made anew at each reading."""

    make: Callable[[], Iterator[Entry]]

    def read(self) -> Iterator[Entry]:
        return self.make()

    def describe(self) -> dict[str, Any]:
        return {"file": "made"}


def encode_pictures(
    count: int, *, every: int = 1, size: tuple[int, int] = (WIDTH, HEIGHT)
) -> list[bytes]:
    """Return `count` pictures, a keyframe each second, each of another grey every so often."""
    context = CodecContext.create("libx264", "w")
    context.width, context.height = size
    context.pix_fmt, context.time_base, context.framerate = "yuv420p", _BASE, Fraction(FPS)
    context.gop_size, context.max_b_frames, context.thread_count = FPS, 0, 1
    context.options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "30"}
    packets = []
    for index in range(count):
        plane = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        plane[: size[1]] = 40 + index // every % 160
        picture = av.VideoFrame.from_ndarray(plane, format="yuv420p")
        picture.pts, picture.time_base = index * _STEP, _BASE
        packets += context.encode(picture)
    packets += context.encode(None)
    return [bytes(packet) for packet in packets]


def encode_reordered(count: int) -> list[Item]:
    """Return `count` pictures with B-frames, 25 a second, in the order in which they come."""
    context = CodecContext.create("libx264", "w")
    context.width, context.height, context.pix_fmt = 64, 48, "yuv420p"
    context.time_base, context.framerate = _BASE, Fraction(25)
    context.gop_size, context.max_b_frames, context.thread_count = 50, 2, 1
    context.options = {"preset": "veryfast", "x264-params": "scenecut=0:b-adapt=0:b-pyramid=1"}
    packets: list[Any] = []
    for index in range(count):
        picture = av.VideoFrame.from_ndarray(np.full((72, 64), index, np.uint8), format="yuv420p")
        picture.pts, picture.time_base = index * 3600, _BASE
        packets += context.encode(picture)
    packets += context.encode(None)
    return [
        Item(packet, is_video=True, arrival_ns=index * NS_PER_S // 25)
        for index, packet in enumerate(packets)
    ]


def open_source(opened_ns: int = 0) -> Source:
    """Return a connection whose decoder is new."""
    decoder = CodecContext.create("h264", "r")
    set_up_decoder(decoder, IngestConfig(), is_live=True)
    return Source(
        url="made",
        decoder=decoder,
        time_base=_BASE,
        audio=None,
        fps=float(FPS),
        aspect=None,
        decoder_name="h264",
        packets=iter(()),
        close=lambda: None,
        opened_ns=opened_ns,
    )


def make_item(data: bytes, index: int, arrival_s: float) -> Item:
    """Return the packet of picture `index`, come at `arrival_s`."""
    packet: Any = av.Packet(data)
    packet.pts = packet.dts = index * _STEP
    packet.time_base = _BASE
    packet.is_keyframe = index % FPS == 0
    return Item(packet, is_video=True, arrival_ns=round(arrival_s * NS_PER_S))


def make_recording(
    pictures: Sequence[bytes], arrivals_s: Sequence[float] | None = None
) -> MadeRecording:
    """Return one connection of `pictures`, each come at its time, by default 30 a second."""

    def make() -> Iterator[Entry]:
        yield open_source()
        for index, data in enumerate(pictures):
            yield make_item(data, index, arrivals_s[index] if arrivals_s else index / FPS)

    return MadeRecording(make)
