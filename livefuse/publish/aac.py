"""AAC as bytes: AudioSpecificConfig and ADTS headers (ISO/IEC 14496-3, 1.6.2.1 and 1.A.2.2).

Our packets hold raw access units and the configuration beside them, as FLV and MP4 want it.
MPEG-TS wants an ADTS header before each unit.
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


class AacConfig(NamedTuple):
    """What the first bits of an AudioSpecificConfig say."""

    object_type: int
    rate_index: int
    channel_config: int


def build_config(sample_rate_hz: int, channels: int, object_type: int = LOW_COMPLEXITY) -> bytes:
    """Return the two bytes of an AudioSpecificConfig.

    Raises:
        ValueError: AAC has no index for this rate.
    """
    if sample_rate_hz not in SAMPLE_RATES_HZ:
        raise ValueError(f"AAC has no index for {sample_rate_hz} Hz")
    index = SAMPLE_RATES_HZ.index(sample_rate_hz)
    return (object_type << 11 | index << 7 | channels << 3).to_bytes(2, "big")


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


def split_adts(data: bytes) -> tuple[AacConfig, list[bytes]] | None:
    """Return the configuration and the raw access units of `data`, or None: it is not ADTS."""
    units: list[bytes] = []
    config: AacConfig | None = None
    at = 0
    while at + _ADTS_BYTES <= len(data):
        head = data[at : at + _ADTS_BYTES]
        size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
        start = _ADTS_BYTES + (0 if head[1] & 1 else _ADTS_CRC_BYTES)
        if head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or size <= start:  # noqa: PLR2004 - the sync word
            return None
        if at + size > len(data):
            return None
        config = AacConfig((head[2] >> 6) + 1, head[2] >> 2 & 15, (head[2] & 1) << 2 | head[3] >> 6)
        units.append(data[at + start : at + size])
        at += size
    return (config, units) if config is not None and at == len(data) else None
