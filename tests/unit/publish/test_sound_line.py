"""Sound on its line: holes filled, nothing twice, silence up to the pictures (C53)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livefuse.packet import Packet
from livefuse.publish.sound_line import SoundLine

UNIT = 1920  # 1024 samples of 48 kHz
SECOND = 90_000
SILENCE = Packet("audio", b"silence", 0, 0, UNIT)


def create_line():
    return SoundLine(SILENCE, SECOND)


def sound(pts):
    return Packet("audio", b"sound", pts, pts, UNIT)


def test_sound_that_is_whole_passes_as_it_is():
    line = create_line()
    packets = [sound(n * UNIT) for n in range(50)]
    assert [p for packet in packets for p in line.place(packet)] == packets


@pytest.mark.parametrize("jitter", [-90, 0, 90, 900])
def test_lost_units_become_silence_of_the_same_length(jitter):
    line = create_line()
    line.place(sound(0))
    out = line.place(sound(11 * UNIT + jitter))
    assert [p.data for p in out] == [b"silence"] * 10 + [b"sound"]
    assert [p.pts for p in out[:-1]] == [n * UNIT for n in range(1, 11)]
    assert out[-1].pts == 11 * UNIT + jitter, "sound is never moved"


def test_a_jump_is_not_filled_at_once():
    line = create_line()
    line.place(sound(0))
    assert len(line.place(sound(3 * SECOND))) == 1


def test_what_silence_has_taken_the_place_of_is_not_sent():
    line = create_line()
    line.place(sound(0))
    filled = line.follow(UNIT + SECOND)
    assert sum(p.duration for p in filled) <= SECOND
    assert line.place(sound(10 * UNIT)) == []
    assert line.late_packets == 1
    end = filled[-1].pts + UNIT
    assert [p.data for p in line.place(sound(end))] == [b"sound"]


def test_silence_goes_on_with_the_pictures_until_sound_comes():
    line = create_line()
    line.place(sound(0))
    assert line.follow(SECOND) == [], "pictures may be ahead for a second"
    out = []
    for picture in range(SECOND + UNIT, 5 * SECOND, 18_000):  # held, five a second
        out += line.follow(picture)
    assert [p.pts for p in out] == [UNIT + n * UNIT for n in range(len(out))]
    assert 5 * SECOND - 18_000 - SECOND // 4 - UNIT < out[-1].pts + UNIT <= 5 * SECOND - SECOND // 4
    line.place(sound(5 * SECOND))
    assert line.follow(5 * SECOND + SECOND // 2) == [], "patience is there again"


def test_sound_that_comes_back_a_little_after_its_picture_is_heard_at_once():
    line = create_line()
    line.place(sound(0))
    for picture in range(0, 5 * SECOND, 3000):
        line.follow(picture)
    heard = []
    for picture in range(5 * SECOND, 6 * SECOND, 3000):
        line.follow(picture)
        heard += line.place(sound(picture - 9000))
    assert not line.late_packets
    assert [p.data for p in heard].count(b"sound") == 30


def test_sound_that_was_announced_and_never_comes_is_silence():
    line = create_line()
    assert line.follow(500) == []
    assert line.follow(500 + SECOND)[0].pts == 500


def test_sound_that_is_always_late_is_heard_after_a_while():
    """A camera that sends its sound 1.5 s behind its pictures: not silence for ever."""
    line = create_line()
    heard = []
    for n in range(600):
        picture = n * UNIT
        heard += [p for p in line.place(sound(picture - 135_000)) if p.data == b"sound"]
        line.follow(picture)
    assert len(heard) > 300
    assert [b.pts - a.pts for a, b in itertools.pairwise(heard[-200:])] == [UNIT] * 199


def test_a_jump_of_the_pictures_is_no_flood_of_silence():
    line = create_line()
    line.place(sound(0))
    assert len(line.follow(10_000 * SECOND)) <= SECOND // UNIT


def test_a_stream_that_silence_cannot_be_made_for_keeps_its_holes():
    line = SoundLine(None, SECOND)
    assert line.place(sound(0)) == [sound(0)]
    assert line.place(sound(5 * UNIT)) == [sound(5 * UNIT)]
    assert line.follow(50 * SECOND) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4 * SECOND)), max_size=60))
def test_whatever_comes_the_line_never_steps_back(moves):
    line = create_line()
    out = []
    at = 0
    for is_sound, step in moves:
        at += step
        out += line.place(sound(at - SECOND // 2)) if is_sound else line.follow(at)
    assert all(b.pts > a.pts - UNIT for a, b in itertools.pairwise(out))
    assert all(b.pts >= a.pts for a, b in itertools.pairwise(out))


@settings(deadline=None)
@given(st.sets(st.integers(1, 280), max_size=200))
def test_whatever_is_lost_the_length_is_the_wall_time(lost):
    """(C53) Up to two seconds in a row, within 20 ms."""
    runs = [len(list(g)) for k, g in itertools.groupby(range(300), lost.__contains__) if k]
    lost = lost if max(runs, default=0) < 90 else set()
    line = create_line()
    stamps = [round(n * UNIT / 90) * 90 for n in range(300)]  # whole ms, as RTMP has them
    out = [p for n in range(300) if n not in lost for p in line.place(sound(stamps[n]))]
    whole = sum(p.duration for p in out)
    assert abs(whole - 300 * UNIT) <= 20 * 90
    assert abs(out[-1].pts + UNIT - 300 * UNIT) <= 20 * 90
