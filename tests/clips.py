"""Tiny media files of a given kind, for the ingest tests."""

from __future__ import annotations

from fractions import Fraction

import av
import numpy as np


def write_clip(  # noqa: PLR0913 - each is a choice of some test, with a default
    path,
    *,
    size=(160, 120),
    frames=30,
    stamps_ms=None,
    codec="libx264",
    pixel_format="yuv420p",
    options=None,
    audio=None,
    rate_hz=48_000,
):
    """Write pictures of rising luma, 30 a second or at `stamps_ms`, and return `path`.

    `audio` is a codec's name: a second of silence of `rate_hz` goes with each 30 pictures.
    """
    stamps_ms = stamps_ms or [round(i * 1000 / 30) for i in range(frames)]
    with av.open(str(path), "w") as container:
        video = container.add_stream(
            codec, rate=30, options={"preset": "ultrafast"} | (options or {})
        )
        video.width, video.height = size
        video.pix_fmt = pixel_format
        video.codec_context.time_base = Fraction(1, 1000)
        sound = container.add_stream(audio, rate=rate_hz) if audio else None
        if sound is not None:
            sound.layout = "mono"
        for i, stamp in enumerate(stamps_ms):
            luma = np.full((size[1], size[0], 3), 20 + i * 2 % 200, np.uint8)
            picture = av.VideoFrame.from_ndarray(luma, "rgb24").reformat(format=pixel_format)
            picture.pts, picture.time_base = stamp, Fraction(1, 1000)
            container.mux(video.encode(picture))
        container.mux(video.encode(None))
        if sound is not None:
            for i in range(len(stamps_ms) * rate_hz // 30 // 1024):
                piece = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
                piece.sample_rate, piece.pts = rate_hz, i * 1024
                piece.time_base = Fraction(1, rate_hz)
                container.mux(sound.encode(piece))
            container.mux(sound.encode(None))
    return path


def write_sound(path):
    """Write half a second of silence without pictures and return `path`."""
    with av.open(str(path), "w") as container:
        sound = container.add_stream("aac", rate=48_000)
        sound.layout = "mono"
        for i in range(24):
            piece = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
            piece.sample_rate, piece.pts, piece.time_base = 48_000, i * 1024, Fraction(1, 48_000)
            container.mux(sound.encode(piece))
        container.mux(sound.encode(None))
    return path
