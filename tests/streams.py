"""Encoded streams for the tests of what publishes: short, made once, with and without sound."""

from __future__ import annotations

import io
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import av
import numpy as np

from livefuse.config import AudioConfig, EncodeConfig
from livefuse.frame import TIME_BASE_HZ, Colour, Frame, create_frame
from livefuse.packet import AudioInfo, Packet, StreamsInfo
from livefuse.publish.audio import AudioTrack
from livefuse.publish.encode import VideoEncoder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDTH, HEIGHT, FPS = 320, 180, 30
STEP = TIME_BASE_HZ // FPS


@dataclass(slots=True, frozen=True)
class Media:
    """Packets of a stream and its description."""

    streams: StreamsInfo
    video: list[Packet]
    audio: list[Packet]

    @property
    def packets(self) -> list[Packet]:
        """All, in the order of decoding."""
        return sorted([*self.video, *self.audio], key=lambda packet: packet.dts)


def draw(frame: Frame, index: int) -> None:
    """Fill `frame` with bars that move."""
    frame.y[:] = ((np.arange(frame.width)[None, :] + index * 5) % 200 + 20).astype(np.uint8)
    frame.u[:] = 90 + index % 60
    frame.v[:] = 150


@cache
def make_media(frames: int = 60, *, interval_s: float = 1.0, with_audio: bool = True) -> Media:
    """Return `frames` encoded pictures and their sound (AAC, 48 kHz mono)."""
    config = EncodeConfig(bitrate_kbps=400, keyframe_interval_s=interval_s)
    encoder = VideoEncoder(config, WIDTH, HEIGHT, FPS, Colour())
    frame = create_frame(WIDTH, HEIGHT)
    video: list[Packet] = []
    for index in range(frames):
        draw(frame, index)
        frame.pts = index * STEP
        video += encoder.encode(frame)
    audio, info = make_sound(frames / FPS) if with_audio else ([], None)
    return Media(StreamsInfo(encoder.info, info), video, audio)


def make_sound(seconds: float, rate_hz: int = 48_000) -> tuple[list[Packet], AudioInfo]:
    """Return a tone as AAC packets."""
    track = AudioTrack(AudioInfo("pcm_s16le", rate_hz, 1), AudioConfig())
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    tone = (8000 * np.sin(2 * np.pi * 440 * times)).astype("<i2")
    packets: list[Packet] = []
    for start in range(0, len(tone), 960):
        pts = start * TIME_BASE_HZ // rate_hz
        packets += track.process(Packet("audio", tone[start : start + 960].tobytes(), pts, pts))
    return [packet for packet in packets if packet.dts >= 0], track.info


class Read(NamedTuple):
    """A packet as FFmpeg found it, as values: its own do not outlive their container."""

    kind: str
    dts: int
    pts_s: float
    size: int
    is_keyframe: bool


@dataclass(slots=True)
class ReadBack:
    """What is in a stream: `pictures` are the times in s of those that could be decoded."""

    kinds: list[str]
    codecs: list[str]
    sizes: set[tuple[int, int]]
    packets: list[Read]
    pictures: list[float]
    corrupt: int = 0

    def of(self, kind: str) -> list[Read]:
        """The packets of `kind`."""
        return [packet for packet in self.packets if packet.kind == kind]


def read_back(source: bytes | Path, form: str | None = None, *, decode: bool = True) -> ReadBack:
    """Read, and decode, bytes or a file to the end."""
    file = io.BytesIO(source) if isinstance(source, bytes) else str(source)
    container: Any
    with av.open(file, format=form) as container:
        streams = list(container.streams)
        found = ReadBack(
            [stream.type for stream in streams],
            [stream.codec_context.name for stream in streams],
            set(),
            [],
            [],
        )
        for packet in container.demux():
            kind = packet.stream.type
            if packet.size:
                pts_s = float(packet.pts * packet.time_base)
                is_key = bool(packet.is_keyframe)
                found.packets.append(Read(kind, packet.dts, pts_s, packet.size, is_key))
            for picture in packet.decode() if decode and kind == "video" else ():
                found.pictures.append(float(picture.pts * picture.time_base))
                found.sizes.add((picture.width, picture.height))
                found.corrupt += bool(picture.is_corrupt)
    return found


class LiveFeed:
    """Pictures encoded in real time and sent to an output, as the job does it; for `with`."""

    def __init__(self, send: Callable[[Packet], None], *, noisy: bool = False) -> None:
        self.encoder = VideoEncoder(
            EncodeConfig(bitrate_kbps=3000 if noisy else 400, keyframe_interval_s=10.0),
            WIDTH,
            HEIGHT,
            FPS,
            Colour(),
        )
        self.streams = StreamsInfo(self.encoder.info, None)
        self.longest_send_s = 0.0
        self._send = send
        self._noisy = noisy
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="livefuse-test-feed", daemon=True)

    def __enter__(self) -> LiveFeed:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        frame = create_frame(WIDTH, HEIGHT)
        random = np.random.default_rng(1)
        started = time.monotonic()
        index = 0
        while not self._stop.wait(max(started + index / FPS - time.monotonic(), 0)):
            draw(frame, index)
            if self._noisy:
                frame.y[:] = random.integers(16, 235, frame.y.shape, dtype=np.uint8)
            frame.pts = index * STEP
            for packet in self.encoder.encode(frame):
                before = time.monotonic()
                self._send(packet)
                self.longest_send_s = max(self.longest_send_s, time.monotonic() - before)
            index += 1
