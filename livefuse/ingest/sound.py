"""Encoded sound on its way through: named for the outputs, freed of transport headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.packet import AudioInfo

if TYPE_CHECKING:
    from av.codec.context import CodecContext

# ISO/IEC 14496-3, table 1.18: the index of a sampling rate in ADTS and AudioSpecificConfig.
_AAC_RATES: Final = (
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000,
    7350,
)  # fmt: skip
_AAC_LC: Final = 2
_ADTS_BYTES, _ADTS_CRC_BYTES = 7, 2
_MAX_CHANNELS: Final = 8


class Adts(NamedTuple):
    """What the header of an AAC frame in MPEG-TS says. `config` is an AudioSpecificConfig."""

    header_bytes: int
    sample_rate_hz: int
    channels: int
    config: bytes


def describe_sound(codec: CodecContext | None) -> AudioInfo | None:
    """Return what the outputs have to know of an audio stream; None when it cannot be named."""
    rate, channels = getattr(codec, "sample_rate", 0), getattr(codec, "channels", 0)
    if codec is None or not rate or not channels:
        return None
    name, extradata = codec.codec.canonical_name, codec.extradata or b""
    if name == "aac" and not extradata:
        extradata = build_aac_config(rate, channels)
    return AudioInfo(name, rate, channels, extradata)


def build_aac_config(rate_hz: int, channels: int, object_type: int = _AAC_LC) -> bytes:
    """Return an AudioSpecificConfig; empty when it has no short form."""
    if rate_hz not in _AAC_RATES or not 1 <= channels <= _MAX_CHANNELS:
        return b""
    layout = min(channels, _MAX_CHANNELS - 1)
    value = object_type << 11 | _AAC_RATES.index(rate_hz) << 7 | layout << 3
    return value.to_bytes(2, "big")


def read_adts(data: bytes) -> Adts | None:
    """Return the ADTS header that `data` starts with, or None when there is none."""
    if len(data) <= _ADTS_BYTES or data[0] != 0xFF or data[1] & 0xF6 != 0xF0:  # noqa: PLR2004 - sync word
        return None
    size = _ADTS_BYTES + (0 if data[1] & 1 else _ADTS_CRC_BYTES)
    index, layout = data[2] >> 2 & 15, (data[2] & 1) << 2 | data[3] >> 6
    if index >= len(_AAC_RATES) or not layout:
        return Adts(size, 0, 0, b"")
    rate, channels = _AAC_RATES[index], _MAX_CHANNELS if layout == _MAX_CHANNELS - 1 else layout
    return Adts(size, rate, channels, build_aac_config(rate, channels, (data[2] >> 6) + 1))
