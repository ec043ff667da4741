"""The marks of generated pictures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.config import EncodeConfig, MarkConfig
from livefuse.frame import Colour, create_frame
from livefuse.packet import Packet
from livefuse.publish.encode import VideoEncoder
from livefuse.publish.h264 import get_nal_type, split_nals
from livefuse.publish.mark import (
    Label,
    MarkRecord,
    SeiStamp,
    build_sei,
    hash_slices,
    insert_nal,
    read_record,
    read_sei,
)

SEI, DELIMITER, IDR = 6, 9, 5


def draw_label(size=(1280, 720), luma=16, **config):
    frame = create_frame(*size)
    frame.y[:] = luma
    before = frame.buffer.copy()
    Label(MarkConfig(**config)).draw(frame)
    return frame, before


def find_changed(frame, before):
    rows, columns = np.nonzero(frame.y != before[: frame.height])
    return columns.min(), rows.min(), columns.max(), rows.max()


@pytest.mark.parametrize("luma", [16, 128, 235])
def test_the_label_can_be_read_on_any_ground(luma):
    frame, before = draw_label(luma=luma)
    x0, y0, x1, y1 = find_changed(frame, before)
    part = frame.y[y0:y1, x0:x1]
    assert np.percentile(part, 98) > 220
    assert np.percentile(part, 50) < 80


@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (640, 360), (1920, 1080)])
def test_its_letters_have_a_twentieth_of_the_shorter_side(size):
    frame, before = draw_label(size, luma=16)
    x0, y0, x1, y1 = find_changed(frame, before)
    bright = np.nonzero((frame.y[y0 : y1 + 1, x0 : x1 + 1] > 150).any(axis=1))[0]
    assert bright.max() - bright.min() + 1 >= 0.05 * min(size) - 1
    assert 0 <= x0 < x1 < size[0]
    assert 0 <= y0 < y1 < size[1]


@pytest.mark.parametrize("corner", ["top-left", "top-right", "bottom-left", "bottom-right"])
def test_it_stands_in_its_corner_and_touches_nothing_else(corner):
    frame, before = draw_label(luma=100, corner=corner)
    x0, y0, x1, y1 = find_changed(frame, before)
    assert (x0 > 640) == ("right" in corner)
    assert (y0 > 360) == ("bottom" in corner)
    same = frame.y == before[:720]
    same[y0 : y1 + 1, x0 : x1 + 1] = True
    assert same.all()


@pytest.mark.parametrize("size", [(2, 2), (64, 48), (32, 320)])
def test_small_frames_have_what_fits(size):
    frame, before = draw_label(size, luma=100)
    assert not np.array_equal(frame.buffer, before)


@given(
    st.builds(
        MarkRecord,
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**32 - 1),
        st.binary(min_size=16, max_size=16),
    )
)
def test_a_record_comes_back_whatever_it_holds(record):
    nal = build_sei(record)
    assert b"\x00\x00\x01" not in nal
    assert b"\x00\x00\x00" not in nal
    assert read_sei(nal) == record


def encode_some(count=3):
    encoder = VideoEncoder(EncodeConfig(encoder="libx264"), 320, 180, 30.0, Colour())
    packets = []
    for index in range(count):
        frame = create_frame(320, 180)
        frame.y[:] = np.arange(320)[None, :] % 200 + index
        frame.pts = index * 3000
        packets += encoder.encode(frame)
    return packets + encoder.flush()


def test_each_keyframe_carries_a_record_that_fits_it():
    stamp = SeiStamp("main")
    packets = [stamp.stamp(packet, 1_800_000_000.5) for packet in encode_some()]
    assert [packet.is_keyframe for packet in packets] == [True, False, False]
    record = read_record(packets[0].data)
    assert record is not None
    assert record.slices == hash_slices(packets[0].data)
    assert (record.epoch_us, record.sequence) == (1_800_000_000_500_000, 0)
    assert read_record(packets[1].data) is None


def test_the_record_stands_right_before_the_first_slice():
    packet = SeiStamp("main").stamp(encode_some(1)[0], 0.0)
    kinds = [get_nal_type(nal) for nal in split_nals(packet.data)]
    first = kinds.index(IDR)
    assert kinds[first - 1] == SEI
    assert set(kinds[: first - 1]) <= {7, 8, SEI, DELIMITER}


def test_the_slices_are_untouched_by_it():
    packet = encode_some(1)[0]
    stamped = SeiStamp("main").stamp(packet, 0.0)
    assert hash_slices(stamped.data) == hash_slices(packet.data)
    assert len(stamped.data) - len(packet.data) < 100


def test_a_record_on_another_picture_is_seen():
    one, other = encode_some(1)[0], encode_some(3)[2]
    record = MarkRecord(1, 2, 3, hash_slices(one.data))
    moved = insert_nal(other.data, build_sei(record))
    found = read_record(moved)
    assert found is not None
    assert found.slices != hash_slices(moved)


def test_sound_is_left_alone():
    packet = Packet("audio", b"\x00\x00\x01\x65", 0, 0)
    assert SeiStamp("main").stamp(packet, 0.0) is packet


def test_other_messages_are_not_ours():
    assert read_sei(b"\x06\x05\x10" + b"x" * 16 + b"\x80") is None
    assert read_sei(b"\x06") is None


def test_drawing_costs_little_of_the_picture():
    """The box is a corner's worth, not a banner over the picture."""
    frame, before = draw_label(luma=100)
    x0, y0, x1, y1 = find_changed(frame, before)
    assert (x1 - x0) * (y1 - y0) < 0.03 * 1280 * 720
