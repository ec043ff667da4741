"""Sound on its way out: AAC goes on untouched, everything else becomes AAC, in step by PTS."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

import av
import msgspec

from livefuse.aac import build_config, parse_config, read_adts
from livefuse.errors import PublishError
from livefuse.frame import TIME_BASE_HZ
from livefuse.packet import AudioInfo, Packet
from livefuse.publish.sample_line import UNIT_SAMPLES, SampleLine, Unit

if TYPE_CHECKING:
    import numpy as np
    from av.audio.codeccontext import AudioCodecContext
    from numpy.typing import NDArray

    from livefuse.config import AudioConfig

_RATES_KEPT_HZ: Final = (44_100, 48_000)
_FALLBACK_RATE_HZ: Final = 48_000
_MAX_CHANNELS: Final = 2
_GLOBAL_HEADER: Final = 1 << 22


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
    def source_codec(self) -> str:
        """What the sound is coded in as it comes."""
        return self._source.codec

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
        self._line = SampleLine(self._rate_hz, target.channels)
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
                out += self._encode(self._line.place(samples, at))
                at += samples.shape[1]
        return out

    def flush(self) -> list[Packet]:
        last = self._encode(self._line.flush())
        return last + [self._convert(packet) for packet in self._encoder.encode(None)]

    def _encode(self, units: list[Unit]) -> list[Packet]:
        out: list[Packet] = []
        for start, samples in units:
            frame = av.AudioFrame.from_ndarray(samples, "fltp", self._layout)
            frame.sample_rate = self._rate_hz
            frame.time_base = Fraction(1, self._rate_hz)
            frame.pts = start
            out += [self._convert(packet) for packet in self._encoder.encode(frame)]
        return out

    def _convert(self, packet: av.Packet[Any]) -> Packet:
        pts = round((packet.pts or 0) * TIME_BASE_HZ / self._rate_hz)
        duration = UNIT_SAMPLES * TIME_BASE_HZ // self._rate_hz
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
