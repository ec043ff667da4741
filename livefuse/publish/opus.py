"""AAC -> Opus for WebRTC viewers, in step by PTS: once for all of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

import av

from livefuse.frame import TIME_BASE_HZ
from livefuse.packet import Packet

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext
    from av.audio.frame import AudioFrame

    from livefuse.packet import AudioInfo

RATE_HZ: Final = 48_000
UNIT_SAMPLES: Final = 960
"""20 ms, what browsers send and expect."""
_MAX_DRIFT_SAMPLES: Final = RATE_HZ * 40 // 1000
"""A stamp that is off by more has a cause: the line moves there. Less is jitter."""


class OpusTranscoder:
    """One thread. Foreign errors (`av.FFmpegError`) are the caller's: a bad packet is skipped."""

    def __init__(self, info: AudioInfo, bitrate_kbps: int) -> None:
        self._decoder = cast("AudioCodecContext", av.CodecContext.create(info.codec, "r"))
        self._decoder.sample_rate = info.sample_rate_hz
        self._decoder.extradata = info.extradata
        self._decoder.thread_count = 1
        self._encoder = _open_encoder(bitrate_kbps)
        self._start()

    def process(self, packet: Packet) -> list[Packet]:
        """Return what `packet` becomes, in packets of 20 ms, perhaps nothing yet."""
        wrapped = av.Packet(packet.data)
        at = packet.pts * RATE_HZ // TIME_BASE_HZ
        out: list[Packet] = []
        for frame in self._decoder.decode(wrapped):
            frame.pts = None
            expected = self._position + self._taken
            if self._taken == 0 or abs(at - expected) > _MAX_DRIFT_SAMPLES:
                self._start(at)
            count = frame.samples * RATE_HZ // frame.sample_rate
            self._taken += count
            at += count
            for unit in self._resampler.resample(frame):
                out += self._encode(unit)
        return out

    def _start(self, at: int = 0) -> None:
        """Begin again at sample `at` of the line; what was pending is less than one unit."""
        self._resampler = av.AudioResampler("s16", "stereo", RATE_HZ, frame_size=UNIT_SAMPLES)
        self._position, self._taken, self._given = at, 0, 0

    def _encode(self, unit: AudioFrame) -> list[Packet]:
        unit.pts = self._position + self._given
        unit.time_base = Fraction(1, RATE_HZ)
        unit.sample_rate = RATE_HZ
        self._given += unit.samples
        return [self._convert(packet) for packet in self._encoder.encode(unit)]

    def _convert(self, packet: av.Packet[Any]) -> Packet:
        # libopus counts its look-ahead (2.5 ms) as time before the first sample.
        pts = (packet.pts or 0) * TIME_BASE_HZ // RATE_HZ
        duration = UNIT_SAMPLES * TIME_BASE_HZ // RATE_HZ
        return Packet("audio", bytes(packet), pts, pts, duration)


def _open_encoder(bitrate_kbps: int) -> AudioCodecContext:
    encoder = av.CodecContext.create("libopus", "w")
    encoder.sample_rate = RATE_HZ
    encoder.layout = "stereo"
    encoder.format = "s16"
    encoder.bit_rate = bitrate_kbps * 1000
    encoder.time_base = Fraction(1, RATE_HZ)
    # Speech and music alike, without the look-ahead of the other modes.
    encoder.options = {"application": "lowdelay", "frame_duration": "20"}
    encoder.open()
    return encoder
