"""Sound for the synthetic sources: a voice-like sound or a quiet hum, a beep, and their AAC.

The beep marks the moment of the flash in the picture, so that an observer can measure how sound
and picture fit at the far end.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Final

import av
import numpy as np

from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.scene import speech
from livefuse.packet import AudioInfo, Packet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Voice = Callable[[int, int], NDArray[np.float32]]

SAMPLE_RATE_HZ: Final = 48_000
BLOCK: Final = 1024
BEEP_HZ: Final = 1000.0
BEEP_S: Final = 0.06
_BEEP_LEVEL: Final = 0.5
_HUM_HZ: Final = 220.0
_HUM_LEVEL: Final = 0.02
_HARMONICS: Final = 18
_PITCH_HZ: Final = 205.0
_BANDWIDTHS_HZ: Final = np.array([110.0, 150.0, 220.0])
_FORMANT_GAINS: Final = np.array([1.0, 0.5, 0.2])


def synthesize_hum(start: int, count: int) -> NDArray[np.float32]:
    """Return `count` samples of a quiet tone from sample `start` on."""
    times_s = np.arange(start, start + count) / SAMPLE_RATE_HZ
    return np.asarray(_HUM_LEVEL * np.sin(2 * np.pi * _HUM_HZ * times_s), np.float32)


def synthesize_voice(start: int, count: int) -> NDArray[np.float32]:
    """Return `count` samples of a voice-like sound from sample `start` on, -1 to 1.

    Source and filter: harmonics of a gliding pitch, weighted by three formants. sin(k x) comes by
    the Chebyshev recurrence from sin and cos of x.
    """
    times_s = np.arange(start, start + count) / SAMPLE_RATE_HZ
    loudness = speech.compute_loudness(times_s)
    if not loudness.any():
        return np.zeros(count, np.float32)
    phase = _compute_pitch_phase(times_s)
    weights_from = _compute_harmonic_weights(float(times_s[0]))
    weights_to = _compute_harmonic_weights(float(times_s[-1]))
    glide = np.linspace(0.0, 1.0, count)
    before, now, turn = np.zeros(count), np.sin(phase), 2.0 * np.cos(phase)
    total = np.zeros(count)
    for low, high in zip(weights_from, weights_to, strict=True):
        total += now * (low + (high - low) * glide)
        before, now = now, turn * now - before
    return np.asarray(0.2 * total * loudness, np.float32)


def _compute_pitch_phase(times_s: NDArray[np.float64]) -> NDArray[np.float64]:
    # The integral of 205 + 18 sin(2 pi 0.31 t) + 9 sin(2 pi 1.7 t) Hz.
    slow = 18.0 / 0.31 * (1.0 - np.cos(2 * np.pi * 0.31 * times_s))
    quick = 9.0 / 1.7 * (1.0 - np.cos(2 * np.pi * 1.7 * times_s))
    return np.asarray(2 * np.pi * _PITCH_HZ * times_s + slow + quick, np.float64)


def _compute_harmonic_weights(time_s: float) -> NDArray[np.float64]:
    formants = speech.compute_formants(time_s)
    hertz = _PITCH_HZ * np.arange(1, _HARMONICS + 1)
    distance = (hertz[:, None] - formants) / _BANDWIDTHS_HZ
    weights = (_FORMANT_GAINS / (1.0 + distance**2)).sum(axis=1) + 0.03
    return np.asarray(weights / np.sqrt(np.arange(1, _HARMONICS + 1)), np.float64)


def find_sync_moments(fps: Fraction, start_s: float, end_s: float) -> Iterator[float]:
    """Yield the times of the frames that first show the flash: the first of each whole second."""
    for second in range(max(int(start_s) - 1, 1), int(end_s) + 2):
        yield float(ceil(second * fps) / fps)


def add_beeps(samples: NDArray[np.float32], start: int, fps: Fraction) -> None:
    """Replace `samples` (from sample `start` on) by the beep where one is due, in place."""
    end = start + len(samples)
    span_s = (start / SAMPLE_RATE_HZ - BEEP_S, end / SAMPLE_RATE_HZ)
    for moment_s in find_sync_moments(fps, *span_s):
        first = round(moment_s * SAMPLE_RATE_HZ)
        low = max(first, start)
        high = min(first + round(BEEP_S * SAMPLE_RATE_HZ), end)
        if low < high:
            times_s = np.arange(low - first, high - first) / SAMPLE_RATE_HZ
            beep = _BEEP_LEVEL * np.sin(2 * np.pi * BEEP_HZ * times_s)
            samples[low - start : high - start] = beep


class AacSource:
    """Makes AAC packets on the job's line, in step with the frames. One thread.

    The encoder's first packet is its primer and lies before 0; it is dropped, so that sound starts
    at 0 and players that do not trim (FLV) play it in time.
    """

    def __init__(self, voice: Voice, sync_fps: Fraction | None, bitrate_kbps: int = 96) -> None:
        self._voice = voice
        self._sync_fps = sync_fps
        self._next = 0
        encoder = av.CodecContext.create("aac", "w")
        assert isinstance(encoder, av.AudioCodecContext)  # noqa: S101 - narrows the type
        encoder.sample_rate = SAMPLE_RATE_HZ
        encoder.layout = "mono"
        encoder.format = "fltp"
        encoder.bit_rate = bitrate_kbps * 1000
        encoder.time_base = Fraction(1, SAMPLE_RATE_HZ)
        encoder.options = {"aac_coder": "fast"}  # half the time of the default
        encoder.open()
        self._encoder = encoder

    @property
    def info(self) -> AudioInfo:
        """What the packets are."""
        return AudioInfo("aac", SAMPLE_RATE_HZ, 1, bytes(self._encoder.extradata or b""))

    def encode_until(self, time_s: float, arrival_ns: int) -> list[Packet]:
        """Return the packets of the sound up to `time_s`."""
        packets: list[Packet] = []
        while self._next < time_s * SAMPLE_RATE_HZ:
            packets += self._encode(self._create_block(), arrival_ns)
        return packets

    def finish(self, arrival_ns: int) -> list[Packet]:
        """Return what the encoder still holds."""
        return self._encode(None, arrival_ns)

    def _create_block(self) -> av.AudioFrame:
        samples = self._voice(self._next, BLOCK)
        if self._sync_fps is not None:
            add_beeps(samples, self._next, self._sync_fps)
        frame = av.AudioFrame.from_ndarray(samples[None, :], format="fltp", layout="mono")
        frame.sample_rate = SAMPLE_RATE_HZ
        frame.time_base = Fraction(1, SAMPLE_RATE_HZ)
        frame.pts = self._next
        self._next += BLOCK
        return frame

    def _encode(self, frame: av.AudioFrame | None, arrival_ns: int) -> list[Packet]:
        made = []
        for packet in self._encoder.encode(frame):
            if packet.pts is None or packet.pts < 0:
                continue
            pts = packet.pts * TIME_BASE_HZ // SAMPLE_RATE_HZ
            duration = BLOCK * TIME_BASE_HZ // SAMPLE_RATE_HZ
            made.append(Packet("audio", bytes(packet), pts, pts, duration, arrival_ns=arrival_ns))
        return made
