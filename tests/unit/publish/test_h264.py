"""Annex B in, lengths and configuration records out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.publish.h264 import (
    build_avcc,
    get_nal_type,
    has_parameter_sets,
    split_nals,
    strip_to_lengths,
)

# A unit never holds a start code (emulation prevention), nor ends in zero (the stop bit).
nals = st.lists(
    st.builds(
        lambda kind, body: bytes([kind | 0x60]) + body.replace(b"\x00", b"\x01") + b"\x80",
        st.integers(1, 12),
        st.binary(max_size=40),
    ),
    min_size=1,
    max_size=6,
)
SPS = b"\x67\x64\x00\x1e\xac\xb4"
PPS = b"\x68\xef\x3c\xb0"


@given(nals, st.lists(st.booleans(), min_size=6, max_size=6))
def test_units_are_found_behind_long_and_short_start_codes(units, longs):
    data = b"".join(
        (b"\x00\x00\x00\x01" if long else b"\x00\x00\x01") + unit
        for unit, long in zip(units, longs, strict=False)
    )
    assert split_nals(data) == units


@given(nals)
def test_lengths_name_exactly_the_units_that_are_no_parameter_sets(units):
    data = strip_to_lengths(b"".join(b"\x00\x00\x01" + unit for unit in units))
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    assert found == [unit for unit in units if get_nal_type(unit) not in (7, 8, 9)]


def test_bytes_that_are_no_byte_stream_have_no_units():
    assert split_nals(b"") == []
    assert split_nals(b"hello") == []


def test_the_record_names_profile_level_and_both_sets():
    record = build_avcc(b"\x00\x00\x00\x01" + SPS + b"\x00\x00\x01" + PPS)
    assert record[:6] == bytes([1, 0x64, 0x00, 0x1E, 0xFF, 0xE1])
    assert record[6:8] == len(SPS).to_bytes(2, "big")
    assert record[8 : 8 + len(SPS)] == SPS
    assert record[8 + len(SPS)] == 1
    assert PPS in record
    assert record.endswith(b"\xfd\xf8\xf8\x00")  # High: 4:2:0, 8 bit
    assert build_avcc(record) == record


def test_a_baseline_record_has_no_chroma_fields():
    record = build_avcc(b"\x00\x00\x01\x67\x42\xc0\x1e\xd9\x00\x00\x01" + PPS)
    assert record.endswith(PPS)


def test_a_configuration_without_parameter_sets_is_refused():
    with pytest.raises(ValueError, match="parameter sets"):
        build_avcc(b"\x00\x00\x01\x65\x88")


def test_parameter_sets_are_recognised():
    assert has_parameter_sets(b"\x00\x00\x01" + SPS + b"\x00\x00\x01\x65\x88")
    assert not has_parameter_sets(b"\x00\x00\x01\x65\x88")
