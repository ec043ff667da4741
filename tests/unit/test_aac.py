"""AudioSpecificConfig and ADTS, there and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from livefuse.aac import (
    SAMPLE_RATES_HZ,
    AacConfig,
    build_adts_header,
    build_config,
    parse_config,
    read_adts,
)

configs = st.builds(AacConfig, st.integers(1, 4), st.integers(0, 12), st.integers(1, 7))


@given(configs, st.binary(min_size=1, max_size=50))
def test_a_header_is_taken_off_as_it_was_put_on(config, unit):
    data = build_adts_header(config, len(unit)) + unit
    header = read_adts(data)
    assert header is not None
    assert data[header.header_bytes :] == unit
    assert header.sample_rate_hz == SAMPLE_RATES_HZ[config.rate_index]
    assert parse_config(header.config) == config


@given(st.sampled_from(SAMPLE_RATES_HZ), st.sampled_from([1, 2, 3, 4, 5, 6, 8]))
def test_a_configuration_is_read_as_it_was_written(rate_hz, channels):
    parsed = parse_config(build_config(rate_hz, channels))
    assert parsed == AacConfig(2, SAMPLE_RATES_HZ.index(rate_hz), min(channels, 7))


def test_well_known_configurations():
    assert build_config(48_000, 2) == b"\x11\x90"
    assert build_config(44_100, 1) == b"\x12\x08"


@given(st.binary(max_size=60))
def test_any_bytes_have_a_header_within_them_or_none(data):
    header = read_adts(data)
    assert header is None or header.header_bytes in (7, 9)


def test_a_crc_after_the_header_is_skipped():
    head = bytearray(build_adts_header(AacConfig(2, 4, 2), 7))
    head[1] &= 0xFE  # protected: two bytes of CRC follow
    header = read_adts(bytes(head) + b"\xaa\xbbhello")
    assert header is not None
    assert (header.header_bytes, header.sample_rate_hz, header.channels) == (9, 44_100, 2)


def test_raw_units_have_no_header():
    assert read_adts(b"\xde\x02\x00Lavc59.37.100") is None
    assert read_adts(b"") is None


def test_a_reserved_rate_has_no_configuration():
    header = read_adts(build_adts_header(AacConfig(2, 15, 2), 5) + b"sound")
    assert header is not None
    assert header.config == b""


def test_explicit_he_aac_is_told_by_its_core():
    assert parse_config((5 << 11 | 6 << 7 | 2 << 3).to_bytes(2, "big")) == AacConfig(2, 6, 2)


def test_a_rate_or_layout_without_a_short_form_is_empty():
    assert parse_config(b"\x17\x80\x00") is None
    assert parse_config(b"") is None
    assert build_config(44_000, 2) == b""
    assert build_config(48_000, 0) == b""
