"""AAC out of MPEG-TS loses its transport header; outputs learn the codec's configuration."""

from __future__ import annotations

from livefuse.ingest.sound import build_aac_config, read_adts


def make_adts(payload, *, rate_index=3, channels=2, crc=False):
    size = 7 + (2 if crc else 0) + len(payload)
    head = bytes(
        [
            0xFF,
            0xF0 if crc else 0xF1,
            1 << 6 | rate_index << 2 | channels >> 2,
            (channels & 3) << 6 | size >> 11,
            size >> 3 & 255,
            (size & 7) << 5 | 31,
            0xFC,
        ]
    )
    return head + (b"\0\0" if crc else b"") + payload


def test_config_of_lc_at_48_khz_stereo():
    assert build_aac_config(48_000, 2) == b"\x11\x90"
    assert build_aac_config(44_100, 1) == b"\x12\x08"


def test_config_without_a_short_form_is_empty():
    assert build_aac_config(12_345, 2) == b""
    assert build_aac_config(48_000, 0) == b""


def test_header_is_measured_and_understood():
    data = make_adts(b"sound")
    header = read_adts(data)
    assert header is not None
    assert data[header.header_bytes :] == b"sound"
    assert (header.sample_rate_hz, header.channels, header.config) == (48_000, 2, b"\x11\x90")


def test_header_with_checksum_is_longer():
    data = make_adts(b"sound", crc=True)
    header = read_adts(data)
    assert header is not None
    assert data[header.header_bytes :] == b"sound"


def test_raw_frames_have_no_header():
    assert read_adts(b"\xde\x02\x00Lavc59.37.100") is None
    assert read_adts(b"") is None


def test_reserved_rate_has_no_config():
    header = read_adts(make_adts(b"sound", rate_index=15))
    assert header is not None
    assert header.config == b""
