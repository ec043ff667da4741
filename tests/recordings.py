"""Streams as events of a recording, for the tests of what records and plays back."""

from __future__ import annotations

import io
from fractions import Fraction
from functools import cache

import av
import numpy as np

from livefuse.config import IngestConfig
from livefuse.ingest.playback import open_recording
from livefuse.ingest.reader import Item
from livefuse.ingest.recording import write_events
from livefuse.ingest.recording_file import About, Event
from livefuse.ingest.sidecar import get_sidecar_path
from livefuse.ingest.source import open_source
from livefuse.ingest.tap import describe_packet, describe_source

CONFIG = IngestConfig()
ABOUT = About("rtmp://host/live/***", "2026-11-30T00:00:00+00:00", "livefuse test")
START_NS = 1_000_000_000_000
PACKET_NS = 15_000_000
PIXELS = {"mjpeg": "yuvj420p", "rawvideo": "yuyv422"}


@cache
def make_stream(form, video, audio=None, *, size=(160, 90), frames=40):
    """Return the bytes of a stream: `form` as FFmpeg calls it, a keyframe each ten pictures."""
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        is_plain = video in PIXELS
        options = {} if is_plain else {"g": "10", "x265-params": "log-level=none"}
        pictures = container.add_stream(video, rate=30, options=options)
        pictures.width, pictures.height = size
        pictures.pix_fmt = PIXELS.get(video, "yuv420p")
        sound = container.add_stream(audio, rate=48_000) if audio else None
        if sound is not None:
            sound.layout = "mono"
        for index in range(frames):
            grey = np.full((size[1], size[0], 3), 20 + index * 3 % 200, np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, "rgb24").reformat(format=pictures.pix_fmt)
            frame.pts, frame.time_base = index, Fraction(1, 30)
            container.mux(pictures.encode(frame))
        if sound is not None:
            _add_silence(container, sound, audio, frames * 1600)
        container.mux(pictures.encode(None))
    return file.getvalue()


def _add_silence(container, sound, codec, samples):
    unit, form, kind = (960, "s16", np.int16) if codec == "libopus" else (1024, "fltp", np.float32)
    for index in range(samples // unit):
        piece = av.AudioFrame.from_ndarray(np.zeros((1, unit), kind), form, "mono")
        piece.sample_rate, piece.pts = 48_000, index * unit
        piece.time_base = Fraction(1, 48_000)
        container.mux(sound.encode(piece))
    container.mux(sound.encode(None))


def read_events(*streams):
    """Return what an ingest's tap is told of these streams, one connection each."""
    events: list[Event] = []
    now = START_NS
    for data in streams:
        source = open_source(io.BytesIO(data), CONFIG, is_live=True, url="x")
        events.append(describe_source(source, now))
        for is_video, packet in source.packets:
            now += PACKET_NS
            events.append(describe_packet(packet, now, is_video=is_video))
        source.close()
    return events


def write(events, path, **options):
    """Write a recording and return its path."""
    write_events(events, path, ABOUT, **options)
    return path


def read_items(path):
    """Return the packets of a recording."""
    return [x for x in open_recording(path, CONFIG).read() if isinstance(x, Item)]


def change_sidecar(path, change):
    """Write the side-car's bytes anew, as `change` makes them."""
    sidecar = get_sidecar_path(path)
    sidecar.write_bytes(change(sidecar.read_bytes()))
