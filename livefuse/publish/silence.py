"""A packet of silence that fits a stream of AAC."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import av
import numpy as np

from livefuse.aac import LOW_COMPLEXITY, parse_config
from livefuse.frame import TIME_BASE_HZ
from livefuse.packet import AudioInfo, Packet

_UNIT_SAMPLES: Final = 1024
_SETTLE: Final = 4  # an encoder's first frames are not like the others


def create_silence(info: AudioInfo) -> Packet | None:
    """Return one AAC-LC frame of silence with PTS 0, or None when the stream is of another kind.

    Silence depends on nothing before it, so the same bytes may be sent again and again.
    """
    try:
        config = parse_config(info.extradata) if info.extradata else None
        if info.codec != "aac" or (config is not None and config.object_type != LOW_COMPLEXITY):
            return None
        data = _encode_silence(info)
    except (av.FFmpegError, ValueError):
        return None
    duration = _UNIT_SAMPLES * TIME_BASE_HZ // info.sample_rate_hz
    return Packet("audio", data, 0, 0, duration) if data else None


def _encode_silence(info: AudioInfo) -> bytes:
    layout = "mono" if info.channels == 1 else "stereo"
    encoder = av.CodecContext.create("aac", "w")
    encoder.sample_rate = info.sample_rate_hz
    encoder.layout = layout
    encoder.format = "fltp"
    encoder.time_base = Fraction(1, info.sample_rate_hz)
    encoder.open()
    packets: list[bytes] = []
    channels = 1 if info.channels == 1 else 2
    for index in range(2 * _SETTLE):
        silence = np.zeros((channels, _UNIT_SAMPLES), np.float32)
        frame = av.AudioFrame.from_ndarray(silence, "fltp", layout)
        frame.sample_rate = info.sample_rate_hz
        frame.time_base = Fraction(1, info.sample_rate_hz)
        frame.pts = index * _UNIT_SAMPLES
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets[-1] if packets else b""
