"""Sound on its way out: AAC goes on untouched, everything else becomes AAC, in step by PTS."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

import av
import msgspec
import numpy as np

from livefuse.aac import build_config, parse_config, read_adts
from livefuse.errors import PublishError
from livefuse.frame import TIME_BASE_HZ
from livefuse.packet import AudioInfo, Packet

if TYPE_CHECKING:
    from av.audio.codeccontext import AudioCodecContext
    from numpy.typing import NDArray

    from livefuse.config import AudioConfig

_RATES_KEPT_HZ: Final = (44_100, 48_000)
_FALLBACK_RATE_HZ: Final = 48_000
_MAX_CHANNELS: Final = 2
_GLOBAL_HEADER: Final = 1 << 22
_UNIT_SAMPLES: Final = 1024
# A stamp may jitter by this much before samples are moved for it.
_TOLERANCE_MS: Final = 40
# A longer hole is left as one: the stream was away.
_MAX_SILENCE_MS: Final = 2000


class AudioTrack:
    """One audio stream out. `process` in one thread; errors are counted in `errors`, not raised.

    AAC with its configuration passes as it is; AAC in ADTS frames (from MPEG-TS) loses the headers;
    other codecs are decoded and encoded again at 44.1 or 48 kHz, mono or stereo.
    Time stamps are kept; `audio.offset_ms` is added by the caller.

    Raises:
        PublishError: the codec cannot be decoded.
    """

    def __init__(self, info: AudioInfo, config: AudioConfig) -> None:
        self._source = info
        self._config = config
        self._transcoder: _Transcoder | None = None
        self.errors = 0
        configuration = info.extradata or build_config(info.sample_rate_hz, info.channels)
        if info.codec == "aac" and configuration:
            self.info = msgspec.structs.replace(info, extradata=configuration)
        else:
            self._transcoder = _Transcoder(info, _choose_output(info), config)
            self.info = self._transcoder.info

    @property
    def is_relayed(self) -> bool:
        """Whether the source's own AAC goes out."""
        return self._transcoder is None

    def process(self, packet: Packet) -> list[Packet]:
        """Return what `packet` becomes, perhaps nothing yet."""
        try:
            out = self._convert(packet)
        except (av.FFmpegError, ValueError):
            self.errors += 1
            return []
        arrival_ns = packet.arrival_ns
        return [p if p.arrival_ns == arrival_ns else replace(p, arrival_ns=arrival_ns) for p in out]

    def flush(self) -> list[Packet]:
        """Return what is still held, at the end."""
        if self._transcoder is None:
            return []
        try:
            return self._transcoder.flush()
        except av.FFmpegError:
            self.errors += 1
            return []

    def _convert(self, packet: Packet) -> list[Packet]:
        if self._transcoder is None:
            header = read_adts(packet.data)
            if header is None:
                return [packet]
            if not header.config or parse_config(header.config) == parse_config(
                self.info.extradata
            ):
                return [replace(packet, data=packet.data[header.header_bytes :])]
            # Outputs were told something else already: make the sound fit what they were told.
            source = msgspec.structs.replace(self._source, extradata=b"")
            self._transcoder = _Transcoder(source, self.info, self._config)
        return self._transcoder.process(packet)


def _choose_output(info: AudioInfo) -> AudioInfo:
    kept = info.sample_rate_hz in _RATES_KEPT_HZ
    rate_hz = info.sample_rate_hz if kept else _FALLBACK_RATE_HZ
    return AudioInfo("aac", rate_hz, min(max(info.channels, 1), _MAX_CHANNELS))


class _Transcoder:
    """Decodes, resamples and encodes; the time line is the source's PTS, in samples."""

    def __init__(self, source: AudioInfo, target: AudioInfo, config: AudioConfig) -> None:
        self._decoder = _open_decoder(source)
        self._layout = "mono" if target.channels == 1 else "stereo"
        self._encoder = _open_encoder(target, config, self._layout)
        self._rate_hz = target.sample_rate_hz
        self._resampler = av.AudioResampler("fltp", self._layout, self._rate_hz)
        self._pending: NDArray[np.float32] = np.zeros((target.channels, 0), np.float32)
        self._next_sample: int | None = None  # where the first pending sample stands on the line
        extradata = target.extradata or self._encoder.extradata or b""
        self.info = AudioInfo("aac", self._rate_hz, target.channels, extradata)

    def process(self, packet: Packet) -> list[Packet]:
        wrapped = av.Packet(packet.data)
        wrapped.pts = wrapped.dts = packet.pts
        wrapped.time_base = Fraction(1, TIME_BASE_HZ)
        at = round(packet.pts * self._rate_hz / TIME_BASE_HZ)
        out: list[Packet] = []
        for decoded in self._decoder.decode(wrapped):
            decoded.pts = None
            for frame in self._resampler.resample(decoded):
                samples = cast("NDArray[np.float32]", frame.to_ndarray())
                out += self._place(samples, at)
                at += samples.shape[1]
        return out

    def flush(self) -> list[Packet]:
        missing = -self._pending.shape[1] % _UNIT_SAMPLES
        self._pending = np.pad(self._pending, ((0, 0), (0, missing)))
        return self._encode_pending() + [self._convert(p) for p in self._encoder.encode(None)]

    def _place(self, samples: NDArray[np.float32], at: int) -> list[Packet]:
        """Put `samples` at place `at` of the line: fill a small hole, cut an overlap."""
        if self._next_sample is None:
            self._next_sample = at
        gap = at - (self._next_sample + self._pending.shape[1])
        if abs(gap) * 1000 <= _TOLERANCE_MS * self._rate_hz:
            gap = 0
        out: list[Packet] = []
        if gap < 0:
            samples = samples[:, -gap:]
        elif gap * 1000 <= _MAX_SILENCE_MS * self._rate_hz:
            self._append(np.zeros((samples.shape[0], gap), np.float32))
        else:
            missing = -self._pending.shape[1] % _UNIT_SAMPLES
            self._append(np.zeros((samples.shape[0], missing), np.float32))
            out = self._encode_pending()
            self._next_sample = at
        self._append(samples)
        return out + self._encode_pending()

    def _append(self, samples: NDArray[np.float32]) -> None:
        self._pending = np.concatenate((self._pending, samples), axis=1)

    def _encode_pending(self) -> list[Packet]:
        out: list[Packet] = []
        while self._pending.shape[1] >= _UNIT_SAMPLES and self._next_sample is not None:
            unit = np.ascontiguousarray(self._pending[:, :_UNIT_SAMPLES])
            self._pending = self._pending[:, _UNIT_SAMPLES:]
            frame = av.AudioFrame.from_ndarray(unit, "fltp", self._layout)
            frame.sample_rate = self._rate_hz
            frame.time_base = Fraction(1, self._rate_hz)
            frame.pts = self._next_sample
            self._next_sample += _UNIT_SAMPLES
            out += [self._convert(packet) for packet in self._encoder.encode(frame)]
        return out

    def _convert(self, packet: av.Packet[Any]) -> Packet:
        pts = round((packet.pts or 0) * TIME_BASE_HZ / self._rate_hz)
        duration = _UNIT_SAMPLES * TIME_BASE_HZ // self._rate_hz
        return Packet("audio", bytes(packet), pts, pts, duration)


def _open_decoder(info: AudioInfo) -> AudioCodecContext:
    try:
        decoder = cast("AudioCodecContext", av.CodecContext.create(info.codec, "r"))
        decoder.sample_rate = info.sample_rate_hz
        decoder.layout = _get_layout_name(info.channels)
        if info.extradata:
            decoder.extradata = info.extradata
        decoder.thread_count = 1
        decoder.open()
    except (av.FFmpegError, ValueError) as error:
        raise PublishError(
            f"the audio codec {info.codec} cannot be decoded ({error})",
            hint="set ingest.audio = false, or send AAC",
        ) from None
    return decoder


def _get_layout_name(channels: int) -> str:
    return {1: "mono", 2: "stereo", 6: "5.1", 8: "7.1"}.get(channels, f"{channels}c")


def _open_encoder(info: AudioInfo, config: AudioConfig, layout: str) -> AudioCodecContext:
    encoder = av.CodecContext.create("aac", "w")
    encoder.sample_rate = info.sample_rate_hz
    encoder.layout = layout
    encoder.format = "fltp"
    encoder.bit_rate = config.bitrate_kbps * 1000
    encoder.time_base = Fraction(1, info.sample_rate_hz)
    encoder.flags |= _GLOBAL_HEADER
    encoder.open()
    return encoder
