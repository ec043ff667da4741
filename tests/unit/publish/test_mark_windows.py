"""Pictures become means of two seconds; nothing grows with time."""

import numpy as np
import pytest

from livefuse.publish.luma.detect import LumaDetector
from livefuse.publish.luma.embed import LumaMark
from livefuse.publish.luma.reader import LumaReader
from livefuse.publish.mark_windows import MeanWindows, take_mean
from tests.mark_scenes import list_frames, show_still

FPS = 30


def show(luma, size=(64, 48)):
    return np.full(size[::-1], luma, np.uint8)


def feed(windows, pictures, start=0):
    over = [windows.add(p, (start + i) / FPS) for i, p in enumerate(pictures)]
    return [window for window in over if window is not None]


def test_a_window_is_the_mean_of_two_seconds():
    windows = MeanWindows()
    over = feed(windows, [show(i) for i in range(150)])
    assert [(w.first_s, round(w.last_s, 3)) for w in over] == [(0, 1.967), (2, 3.967)]
    assert [float(w.luma.mean()) for w in over] == pytest.approx([29.5, 89.5])
    rest = windows.finish()
    assert rest is not None
    assert float(rest.luma.mean()) == pytest.approx(134.5)


def test_a_change_of_size_ends_a_window():
    windows = MeanWindows()
    over = feed(windows, [show(1)] * 20 + [show(2, (32, 24))] * 20)
    assert [w.luma.shape for w in over] == [(48, 64)]
    rest = windows.finish()
    assert rest is not None
    assert rest.luma.shape == (24, 32)


def test_one_picture_is_a_window_and_a_leftover_is_none():
    windows = MeanWindows()
    windows.add(show(7), 0.0)
    rest = windows.finish()
    assert rest is not None
    assert float(rest.luma.mean()) == 7
    windows = MeanWindows()
    feed(windows, [show(7)] * 62)
    assert windows.finish() is None
    assert MeanWindows().finish() is None


def test_all_of_it_together_is_there_when_it_is_more_than_one_window():
    windows = MeanWindows()
    feed(windows, [show(10)] * 60)
    assert windows.get_whole() is None
    feed(windows, [show(20)] * 60, start=60)
    whole = windows.get_whole()
    assert whole is not None
    assert float(whole.luma.mean()) == pytest.approx(15)


def test_large_pictures_are_made_smaller():
    windows = MeanWindows()
    windows.add(show(9, (3840, 2160)), 0.0)
    rest = windows.finish()
    assert rest is not None
    assert rest.luma.shape == (720, 1280)


def mark(number, key=1):
    (frame,) = list_frames(show_still("astronaut"), 1)
    if number is not None:
        LumaMark(key, number).draw(frame)
    return frame.y


def test_the_reader_tells_which_number_was_seen_when():
    """Two jobs one after the other, by two keys, and nothing between them."""
    reader = LumaReader([LumaDetector(1), LumaDetector(2)])
    pictures = [mark(11), mark(11), mark(None), mark(12, key=2)]
    for i, picture in enumerate(pictures):
        reader.look(take_mean([picture])._replace(first_s=2.0 * i, last_s=2.0 * i + 1.9))
    seen = reader.list_sightings()
    assert [(s.which, s.best.number, s.windows, s.first_s, s.last_s) for s in seen] == [
        (0, 11, 2, 0.0, 3.9),
        (1, 12, 1, 6.0, 7.9),
    ]


def test_the_reader_of_another_key_sees_nothing():
    reader = LumaReader([LumaDetector(3)])
    reader.look(take_mean([mark(11)]))
    assert reader.list_sightings() == []
