"""Sound and pictures of one sender on one line."""

from hypothesis import given
from hypothesis import strategies as st

from livefuse.rtc.sync import LINE_HZ, Kind, SenderLine

MS = 1_000_000
RATES: dict[Kind, int] = {"video": 90_000, "audio": 48_000}


def to_ntp(time_s):
    return int((3_900_000_000 + time_s) * 2**32)


def test_until_there_are_reports_arrival_places_both():
    line = SenderLine(RATES)
    first = line.place("video", 4_000_000_000, 1000 * MS)
    assert line.place("audio", 77, 1040 * MS) - first == LINE_HZ * 40 // 1000
    assert line.place("video", 4_000_003_000, 5000 * MS) - first == 3000


def test_reports_put_the_sound_in_step():
    """The sound came 80 ms after the picture of the same moment; afterwards they are one."""
    line = SenderLine(RATES)
    line.place("video", 900_000, 1000 * MS)
    line.place("audio", 480_000, 1080 * MS)
    line.note_report("video", to_ntp(10.0), 900_000)
    line.note_report("audio", to_ntp(10.0), 480_000)
    video = line.place("video", 900_000 + 90_000, 2000 * MS)
    audio = line.place("audio", 480_000 + 48_000, 2080 * MS)
    assert abs(video - audio) <= 1


def test_reports_that_jitter_do_not_move_the_sound_again():
    line = SenderLine(RATES)
    line.place("video", 0, 0)
    line.place("audio", 0, 0)
    line.note_report("video", to_ntp(0.0), 0)
    for second, jitter_s in enumerate((0.0, 0.03, -0.035, 0.02, 0.3, -0.03), start=1):
        line.note_report("audio", to_ntp(second + jitter_s), second * 48_000)
        line.note_report("video", to_ntp(second), second * 90_000)
        place = line.place("audio", second * 48_000, second * 1000 * MS)
        assert abs(place - second * LINE_HZ) <= 1


def test_empty_and_mad_reports_are_passed_over():
    """aiortc reports before it has sent anything: the year 1900."""
    line = SenderLine(RATES)
    line.note_report("audio", 0, 0)
    line.place("video", 0, 0)
    line.place("audio", 0, 0)
    line.note_report("audio", 0, 0)
    line.note_report("video", to_ntp(100.0), 0)
    line.note_report("audio", to_ntp(0.0), 0)
    assert line.place("audio", 48_000, 1000 * MS) == LINE_HZ


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 10_000_000), max_size=50))
def test_the_line_goes_on_where_time_stamps_wrap(start, steps):
    line = SenderLine(RATES)
    place = line.place("video", start, 0)
    at = start
    for step in steps:
        at += step
        now = line.place("video", at % 2**32, 0)
        assert now - place == step
        place = now
