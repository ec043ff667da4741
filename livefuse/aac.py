"""AAC as bytes: AudioSpecificConfig and ADTS headers (ISO/IEC 14496-3, 1.6.2.1 and 1.A.2.2).

Our packets hold raw access units and the configuration beside them, as FLV and MP4 want it.
MPEG-TS has an ADTS header before each unit: it is taken off and put on in publish.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SAMPLE_RATES_HZ: Final = (
    96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350,
)  # fmt: skip
LOW_COMPLEXITY: Final = 2
_ESCAPED_RATE: Final = 15
_ADTS_BYTES: Final = 7
_ADTS_CRC_BYTES: Final = 2
_ADTS_MAX_OBJECT: Final = 4
_MIN_CONFIG_BYTES: Final = 2
_MAX_CHANNELS: Final = 8


class AacConfig(NamedTuple):
    """What the first bits of an AudioSpecificConfig say."""

    object_type: int
    rate_index: int
    channel_config: int


class Adts(NamedTuple):
    """What an ADTS header says. `config` is an AudioSpecificConfig, empty where there is none."""

    header_bytes: int
    sample_rate_hz: int
    channels: int
    config: bytes


def build_config(sample_rate_hz: int, channels: int, object_type: int = LOW_COMPLEXITY) -> bytes:
    """Return the two bytes of an AudioSpecificConfig; empty when that has no short form."""
    if sample_rate_hz not in SAMPLE_RATES_HZ or not 1 <= channels <= _MAX_CHANNELS:
        return b""
    # Eight channels are layout 7: the standard has none for seven.
    layout = min(channels, _MAX_CHANNELS - 1)
    index = SAMPLE_RATES_HZ.index(sample_rate_hz)
    return (object_type << 11 | index << 7 | layout << 3).to_bytes(2, "big")


def parse_config(config: bytes) -> AacConfig | None:
    """Return what `config` says, or None when ADTS could not say the same."""
    if len(config) < _MIN_CONFIG_BYTES:
        return None
    bits = int.from_bytes(config[:2], "big")
    parsed = AacConfig(bits >> 11, bits >> 7 & 15, bits >> 3 & 15)
    if parsed.rate_index == _ESCAPED_RATE or not 1 <= parsed.object_type <= _ADTS_MAX_OBJECT:
        # Explicitly signalled HE-AAC (5, 29): ADTS names the core, decoders find the rest.
        core = AacConfig(LOW_COMPLEXITY, parsed.rate_index, parsed.channel_config)
        return core if parsed.object_type in (5, 29) and parsed.rate_index < _ESCAPED_RATE else None
    return parsed


def build_adts_header(config: AacConfig, unit_bytes: int) -> bytes:
    """Return the ADTS header of one raw access unit of `unit_bytes` bytes."""
    size = unit_bytes + _ADTS_BYTES
    channels = config.channel_config
    return bytes(
        (
            0xFF,
            0xF1,
            (config.object_type - 1) << 6 | config.rate_index << 2 | channels >> 2,
            (channels & 3) << 6 | size >> 11,
            size >> 3 & 0xFF,
            (size & 7) << 5 | 0x1F,
            0xFC,
        )
    )


def read_adts(data: bytes) -> Adts | None:
    """Return the ADTS header that `data` starts with, or None when there is none."""
    if len(data) <= _ADTS_BYTES or data[0] != 0xFF or data[1] & 0xF6 != 0xF0:  # noqa: PLR2004 - the sync word
        return None
    size = _ADTS_BYTES + (0 if data[1] & 1 else _ADTS_CRC_BYTES)
    index, layout = data[2] >> 2 & 15, (data[2] & 1) << 2 | data[3] >> 6
    if index >= len(SAMPLE_RATES_HZ) or not layout:
        return Adts(size, 0, 0, b"")
    rate_hz = SAMPLE_RATES_HZ[index]
    channels = _MAX_CHANNELS if layout == _MAX_CHANNELS - 1 else layout
    return Adts(size, rate_hz, channels, build_config(rate_hz, channels, (data[2] >> 6) + 1))
