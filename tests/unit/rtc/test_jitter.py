"""RTP packets in any order: whole units at once, holes waited for, asked for, given up."""

import random

from hypothesis import given
from hypothesis import strategies as st

from livefuse.rtc.jitter import (
    MAX_TRIES,
    RETRY_MS,
    SOUND_PATIENCE_MS,
    VIDEO_PATIENCE_MS,
    LossTracker,
    Piece,
    UnitBuffer,
    Unwrapper,
)


def make_packets(pictures, start=65_530, size=3):
    """Return (sequence, piece) of `pictures` pictures of `size` packets each."""
    out: list[tuple[int, Piece]] = []
    for picture in range(pictures):
        for part in range(size):
            data = f"{picture}.{part} ".encode()
            number = (start + len(out)) % 65_536
            out.append((number, Piece(picture * 3000, part == size - 1, data)))
    return out


def feed(buffer, packets, now_ms=0.0):
    return [unit for number, piece in packets for unit in buffer.add(number, piece, now_ms)]


def test_a_picture_is_whole_with_its_marked_packet():
    buffer = UnitBuffer(is_video=True)
    first, second, last = make_packets(1)
    assert not feed(buffer, [first, second])
    (unit,) = feed(buffer, [last])
    assert unit.data == b"0.0 0.1 0.2 "
    assert not unit.has_gap


def test_without_marks_the_next_picture_tells():
    packets = [(n, piece._replace(is_last=False)) for n, piece in make_packets(2)]
    assert len(feed(UnitBuffer(is_video=True), packets)) == 1


@given(st.integers(0, 10_000))
def test_any_order_within_reach_gives_the_same_units(seed):
    packets = make_packets(8)
    head, rest = packets[:1], packets[1:]
    shuffled = head + sorted(rest, key=lambda _: random.Random(seed).random())
    assert feed(UnitBuffer(is_video=True), shuffled) == feed(UnitBuffer(is_video=True), packets)


def test_all_that_waited_behind_a_hole_comes_with_the_packet_that_fills_it():
    packets = make_packets(3)
    hole = packets.pop(1)
    buffer = UnitBuffer(is_video=True)
    assert not feed(buffer, packets)
    assert len(feed(buffer, [hole], VIDEO_PATIENCE_MS - 1)) == 3


def test_a_hole_that_stays_is_given_up_and_told():
    packets = make_packets(5)
    del packets[4]  # of the second picture
    buffer = UnitBuffer(is_video=True)
    assert len(feed(buffer, packets[:8])) == 1
    units = feed(buffer, packets[8:], VIDEO_PATIENCE_MS + 1)
    assert [unit.timestamp for unit in units] == [6000, 9000, 12000]
    assert [unit.has_gap for unit in units] == [True, False, False]


def test_a_long_picture_is_waited_for_without_a_hole():
    buffer = UnitBuffer(is_video=True)
    packets = make_packets(1, size=200)
    for step, packet in enumerate(packets[:-1]):
        assert not feed(buffer, [packet], step * 50.0)
    assert len(feed(buffer, packets[-1:], 10_000.0)) == 1


def test_a_sender_that_starts_anew_is_followed():
    buffer = UnitBuffer(is_video=True)
    feed(buffer, make_packets(2, start=10))
    units = feed(buffer, make_packets(3, start=30_000))
    assert units
    assert units[0].has_gap


def test_late_and_repeated_packets_are_left_out():
    buffer = UnitBuffer(is_video=True)
    packets = make_packets(2)
    assert len(feed(buffer, packets)) == 2
    assert not feed(buffer, packets)


def test_sound_is_never_waited_for_longer_than_a_hole_may_take():
    packets = make_packets(6, size=1)
    buffer = UnitBuffer(is_video=False)
    assert len(feed(buffer, packets[:1])) == 1
    assert not feed(buffer, packets[2:4])
    units = feed(buffer, packets[4:5], SOUND_PATIENCE_MS + 1)
    assert [unit.timestamp for unit in units] == [6000, 9000, 12000]


@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=200))
def test_numbers_never_wrap_and_end_in_their_bits(sequences):
    unwrapper = Unwrapper()
    numbers = [unwrapper.unwrap(sequence) for sequence in sequences]
    assert [number % 65_536 for number in numbers] == sequences
    assert all(abs(number - max(numbers[:i])) <= 32_768 for i, number in enumerate(numbers) if i)


def test_a_lost_packet_is_asked_for_until_it_comes():
    tracker = LossTracker()
    assert tracker.note(65_534, 0.0) == []
    assert tracker.note(1, 1.0) == [65_535, 0]
    assert tracker.note(2, 2.0) == []
    assert tracker.note(65_535, 3.0) == []
    assert tracker.note(3, 1.0 + RETRY_MS) == [0]
    asked = [tracker.note(4 + i, 2.0 + RETRY_MS * (i + 2)) for i in range(20)]
    assert sum(map(len, asked)) == MAX_TRIES - 2


def test_a_jump_is_no_loss():
    tracker = LossTracker()
    tracker.note(1, 0.0)
    assert tracker.note(20_000, 1.0) == []
    assert tracker.note(20_002, 2.0) == [20_001]
