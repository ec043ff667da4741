"""What H.264 and HEVC packets tell before they are decoded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.ingest.nal import StreamWatch
from tests.damage import encode_noise


def look(watch, packets):
    return [watch.look_at(packet) for packet in packets]


def split_units(packet):
    return [unit for unit in packet.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1") if unit]


@pytest.mark.parametrize("parameters", ["", "bframes=2:b-pyramid=normal", "slices=3", "ref=4"])
def test_whole_h264_has_no_gap_and_its_keyframes_are_entries(parameters):
    film = encode_noise(parameters=parameters)
    found = look(StreamWatch("h264", b""), film.packets)
    assert not any(one.is_gap or one.has_new_parameters for one in found)
    assert [one.is_entry for one in found] == film.keys


@pytest.mark.parametrize("lost", [1, 7, 19, 25, 38])
def test_a_picture_that_others_refer_to_is_missed(lost):
    """C44."""
    film = encode_noise()
    kept = [packet for index, packet in enumerate(film.packets) if index != lost]
    gaps = [index for index, one in enumerate(look(StreamWatch("h264", b""), kept)) if one.is_gap]
    # Before a keyframe nobody misses it.
    assert gaps == ([] if film.keys[lost + 1] else [lost])


def test_a_lost_keyframe_is_missed():
    film = encode_noise(gop=22)
    kept = film.packets[:22] + film.packets[23:]
    assert [one.is_gap for one in look(StreamWatch("h264", b""), kept)].index(True) == 22


def test_a_source_that_counts_wrongly_is_not_taken_for_a_lossy_one_for_ever():
    film = encode_noise(gop=200)
    found = look(StreamWatch("h264", b""), film.packets[:2] + film.packets[2::3])
    assert 0 < sum(one.is_gap for one in found) < 8


def test_lengths_in_the_place_of_start_codes():
    film = encode_noise()
    # avcC by hand: one SPS, one PPS, lengths of four bytes.
    units = split_units(film.packets[0])
    sps = next(unit for unit in units if unit[0] & 31 == 7)
    pps = next(unit for unit in units if unit[0] & 31 == 8)
    extradata = (
        b"\1" + sps[1:4] + b"\xff\xe1" + len(sps).to_bytes(2, "big") + sps
        + b"\1" + len(pps).to_bytes(2, "big") + pps
    )  # fmt: skip

    packets = [
        b"".join(len(unit).to_bytes(4, "big") + unit for unit in split_units(packet))
        for packet in film.packets
    ]
    found = look(StreamWatch("h264", extradata), packets)
    assert [one.is_entry for one in found] == film.keys
    assert not any(one.has_new_parameters or one.is_gap for one in found)
    assert StreamWatch("h264", extradata).look_at(packets[0]).is_entry
    watch = StreamWatch("h264", extradata)
    look(watch, packets[:5])
    assert watch.look_at(packets[6]).is_gap


@pytest.mark.parametrize(("name", "codec"), [("h264", "libx264"), ("hevc", "libx265")])
@pytest.mark.parametrize("change", [{"size": (96, 160)}, {"full_range": True}])
def test_other_parameter_sets_are_noticed_at_a_keyframe(name, codec, change):
    first, second = encode_noise(codec, frames=20), encode_noise(codec, frames=20, **change)
    found = look(StreamWatch(name, b""), first.packets + second.packets + first.packets)
    assert [i for i, one in enumerate(found) if one.has_new_parameters] == [20, 40]
    assert found[20].is_entry


def test_extradata_is_compared():
    first = encode_noise(frames=2, is_global=True)
    second = encode_noise(frames=2, is_global=True, size=(96, 160))
    watch = StreamWatch("h264", first.extradata)
    assert not watch.take_extradata(first.extradata)
    assert watch.take_extradata(second.extradata)


@given(st.sampled_from(["h264", "hevc", "vp8"]), st.binary(max_size=200), st.binary(max_size=200))
def test_nonsense_is_taken_without_complaint(name, extradata, data):
    watch = StreamWatch(name, extradata)
    for packet in (data, b"\0\0\1" + data, b"\0\0\1\x67" + data, b"\0\0\1\x42" + data):
        found = watch.look_at(packet)
        assert name != "vp8" or not any(found)
