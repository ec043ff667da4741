"""The signed record of a keyframe: what it says, and how it is told that it was tampered with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.config import EncodeConfig
from livefuse.frame import Colour, create_frame
from livefuse.packet import Packet
from livefuse.publish.encode import VideoEncoder
from livefuse.publish.h264 import get_nal_type, split_nals, strip_to_lengths
from livefuse.publish.sei import (
    UUID,
    MarkRecord,
    SeiStamp,
    build_sei,
    hash_slices,
    insert_nal,
    is_record,
    read_record,
    read_sei_marks,
    verify_record,
)
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks, make_mark_keys

SEI, DELIMITER, IDR = 6, 9, 5
JOB = JobMarks("main", REPLAY_KEYS)
PUBLIC = [REPLAY_KEYS.public_key]


def create_stamp(marks=JOB):
    return SeiStamp(marks.number, marks.keys.key_id, marks.keys.signing.sign)


def encode_some(count=3, shade=0):
    encoder = VideoEncoder(EncodeConfig(encoder="libx264"), 320, 180, 30.0, Colour())
    packets = []
    for index in range(count):
        frame = create_frame(320, 180)
        frame.y[:] = np.arange(320)[None, :] % 200 + index + shade
        frame.pts = index * 3000
        packets += encoder.encode(frame)
    return packets + encoder.flush()


@pytest.fixture(scope="module")
def plain():
    return encode_some()


@pytest.fixture(scope="module")
def other():
    return encode_some(shade=40)


@pytest.fixture(scope="module")
def stamped(plain):
    return create_stamp().stamp(plain[0], 1_800_000_000.5).data


def find_record_nal(unit):
    return next(nal for nal in split_nals(unit) if is_record(nal))


@given(
    st.builds(
        MarkRecord,
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**32 - 1),
        st.binary(min_size=16, max_size=16),
        st.binary(min_size=8, max_size=8),
        st.binary(min_size=64, max_size=64),
    )
)
def test_a_record_comes_back_whatever_it_holds(record):
    nal = build_sei(record)
    assert b"\x00\x00\x01" not in nal
    assert b"\x00\x00\x00" not in nal
    assert read_record(b"\x00\x00\x01" + nal) == record


def test_each_keyframe_carries_a_record_that_fits_it(plain):
    stamp = create_stamp()
    packets = [stamp.stamp(packet, 1_800_000_000.5) for packet in plain]
    assert [packet.is_keyframe for packet in packets] == [True, False, False]
    mark = verify_record(packets[0].data, PUBLIC)
    assert mark.verdict == "valid"
    assert mark.install_id == REPLAY_KEYS.install_id
    assert mark.record is not None
    assert mark.record.job == JOB.number
    assert (mark.record.epoch_us, mark.record.sequence) == (1_800_000_000_500_000, 0)
    assert read_sei_marks((packet.data for packet in packets), PUBLIC) == [mark]


def test_the_same_record_is_found_where_units_have_lengths(stamped):
    with_lengths = strip_to_lengths(stamped)
    assert not with_lengths.startswith(b"\x00\x00\x00\x01")
    assert verify_record(with_lengths, PUBLIC) == verify_record(stamped, PUBLIC)


def test_a_unit_whose_length_looks_like_a_start_code_is_read(stamped):
    """00 00 01 xx: a unit of 256 to 511 bytes, or a start code."""
    filler = b"\x06\x05\xff\x20" + b"x" * 287 + b"\x80"
    assert len(filler) == 292
    unit = len(filler).to_bytes(4, "big") + filler + strip_to_lengths(stamped)
    assert unit.startswith(b"\x00\x00\x01")
    assert verify_record(unit, PUBLIC).verdict == "valid"


def test_the_record_stands_right_before_the_first_slice(stamped):
    kinds = [get_nal_type(nal) for nal in split_nals(stamped)]
    first = kinds.index(IDR)
    assert kinds[first - 1] == SEI
    assert set(kinds[: first - 1]) <= {7, 8, SEI, DELIMITER}


def test_the_slices_are_untouched_by_it(plain, stamped):
    assert hash_slices(split_nals(stamped)) == hash_slices(split_nals(plain[0].data))
    assert len(stamped) - len(plain[0].data) < 160


def test_a_record_on_another_video_is_told_as_pasted(stamped, other):
    moved = insert_nal(other[0].data, find_record_nal(stamped))
    assert verify_record(moved, PUBLIC).verdict == "pasted"
    later = insert_nal(other[1].data, find_record_nal(stamped))
    assert verify_record(later, PUBLIC).verdict == "pasted"


def test_a_changed_picture_is_told(stamped):
    place = stamped.rindex(b"\x00\x00\x01") + 40
    changed = stamped[:place] + bytes((stamped[place] ^ 0x10,)) + stamped[place + 1 :]
    assert verify_record(changed, PUBLIC).verdict == "pasted"


def test_one_flipped_bit_anywhere_in_it_is_told_as_altered(stamped):
    """Every bit behind the UUID, header and text as well as numbers, key name and signature."""
    nal = find_record_nal(stamped)
    first = nal.index(UUID) + len(UUID)
    for bit in range(first * 8, (len(nal) - 1) * 8):
        flipped = bytearray(nal)
        flipped[bit // 8] ^= 1 << bit % 8
        unit = stamped.replace(nal, bytes(flipped))
        assert verify_record(unit, PUBLIC).verdict == "altered", bit


def test_a_record_that_says_something_else_is_told_as_altered(stamped):
    record = read_record(stamped)
    assert record is not None
    nal = find_record_nal(stamped)
    for change in (
        {"job": record.job + 1},
        {"epoch_us": record.epoch_us + 1},
        {"sequence": 7},
        {"slices": bytes(16)},
        {"key_id": make_mark_keys().key_id},
        {"signature": bytes(64)},
    ):
        unit = stamped.replace(nal, build_sei(record._replace(**change)))
        assert verify_record(unit, PUBLIC).verdict == "altered", change


def test_a_record_signed_anew_is_another_installs(plain, stamped):
    """With a key of one's own the record is of one's own install; with our key's name it fails."""
    thief = make_mark_keys()
    anew = create_stamp(JobMarks("main", thief)).stamp(plain[0], 0.0).data
    mark = verify_record(anew, PUBLIC)
    assert (mark.verdict, mark.install_id) == ("other_install", thief.install_id)
    assert verify_record(anew, [*PUBLIC, thief.public_key]).verdict == "valid"
    named = SeiStamp(JOB.number, REPLAY_KEYS.key_id, thief.signing.sign).stamp(plain[0], 0.0).data
    assert verify_record(named, PUBLIC).verdict == "altered"


def test_a_record_of_before_is_unsigned(plain):
    record = MarkRecord(1, 2, 3, hash_slices(split_nals(plain[0].data)))
    mark = verify_record(insert_nal(plain[0].data, build_sei(record)), PUBLIC)
    assert (mark.verdict, mark.record, mark.install_id) == ("unsigned", record, "")


def test_a_forged_record_before_the_true_one_hides_nothing(stamped):
    forged = build_sei(MarkRecord(1, 2, 3, bytes(16)))
    place = stamped.index(b"\x00\x00\x00\x01" + find_record_nal(stamped))
    both = stamped[:place] + b"\x00\x00\x00\x01" + forged + stamped[place:]
    assert verify_record(both, PUBLIC).verdict == "valid"


def test_a_keyframe_without_a_record_is_missing_one(plain):
    assert verify_record(plain[0].data, PUBLIC).verdict == "missing"
    assert [mark.verdict for mark in read_sei_marks((p.data for p in plain), PUBLIC)] == ["missing"]


def test_a_record_joined_with_other_messages_is_found(stamped):
    """Some muxers put all messages of a picture into one unit."""
    nal = find_record_nal(stamped)
    joined = b"\x06\x05\x12" + b"y" * 18 + nal[1:]
    assert verify_record(stamped.replace(nal, joined), PUBLIC).verdict == "valid"


def test_sound_is_left_alone():
    packet = Packet("audio", b"\x00\x00\x01\x65", 0, 0)
    assert create_stamp().stamp(packet, 0.0) is packet


@pytest.mark.parametrize(
    "nal", [b"\x06\x05\x10" + b"x" * 16 + b"\x80", b"\x06", b"\x06\xff\xff", b"\x06\x05" + UUID]
)
def test_other_messages_are_not_ours(nal):
    unit = b"\x00\x00\x01" + nal
    assert read_record(unit) is None
    assert verify_record(unit, PUBLIC).verdict == ("altered" if UUID in nal else "missing")


@given(st.binary(max_size=300))
def test_no_bytes_can_upset_the_reader(data):
    for unit in (data, UUID + data, b"\x00\x00\x01\x06\x05" + UUID + data):
        assert verify_record(unit, PUBLIC).verdict != "valid"


def test_a_keyframe_costs_one_signature_and_other_pictures_none(plain):
    """What the encode thread pays: 40 us for each keyframe, nothing in between."""
    asked = []

    def sign(data):
        asked.append(len(data))
        return bytes(64)

    stamp = SeiStamp(1, bytes(8), sign)
    for packet in [*plain, *plain]:
        out = stamp.stamp(packet, 0.0)
        assert (out is packet) == (not packet.is_keyframe)
    assert asked == [71, 71]
