"""AudioSpecificConfig and ADTS, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.publish.aac import (
    SAMPLE_RATES_HZ,
    AacConfig,
    build_adts_header,
    build_config,
    parse_config,
    split_adts,
)

configs = st.builds(AacConfig, st.integers(1, 4), st.integers(0, 12), st.integers(1, 7))


@given(configs, st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=4))
def test_headers_are_taken_off_as_they_were_put_on(config, units):
    data = b"".join(build_adts_header(config, len(unit)) + unit for unit in units)
    assert split_adts(data) == (config, units)


@given(st.sampled_from(SAMPLE_RATES_HZ), st.integers(1, 2))
def test_a_configuration_is_read_as_it_was_written(rate_hz, channels):
    parsed = parse_config(build_config(rate_hz, channels))
    assert parsed == AacConfig(2, SAMPLE_RATES_HZ.index(rate_hz), channels)


@given(st.binary(max_size=60))
def test_any_bytes_are_either_whole_frames_or_none(data):
    split = split_adts(data)
    assert split is None or sum(map(len, split[1])) < len(data)


def test_a_crc_after_the_header_is_skipped():
    head = bytearray(build_adts_header(AacConfig(2, 4, 2), 7))
    head[1] &= 0xFE  # protected: two bytes of CRC follow
    assert split_adts(bytes(head) + b"\xaa\xbbhello") == (AacConfig(2, 4, 2), [b"hello"])


def test_explicit_he_aac_is_told_by_its_core():
    assert parse_config((5 << 11 | 6 << 7 | 2 << 3).to_bytes(2, "big")) == AacConfig(2, 6, 2)


def test_a_rate_without_index_is_refused():
    assert parse_config(b"\x17\x80\x00") is None
    assert parse_config(b"") is None
    with pytest.raises(ValueError, match="44000"):
        build_config(44_000, 2)
