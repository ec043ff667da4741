"""What a publisher sends, between two threads: bounded, with its gaps told."""

import threading

import pytest

from livefuse.clock import ManualClock
from livefuse.config import IngestConfig
from livefuse.ingest.reader import ReaderEnded
from livefuse.ingest.whip_feed import MAX_ITEMS, WhipFeed
from livefuse.rtc.jitter import Unit
from livefuse.rtc.peer import Ending


def make_feed(*, has_sound=True, audio=True):
    return WhipFeed(IngestConfig(audio=audio), ManualClock(), has_sound=has_sound)


def send(feed, number, *, has_gap=False):
    feed.on_unit("video", "H264", Unit(b"x", number * 3000, has_gap))


def test_it_opens_with_the_first_picture():
    feed = make_feed()
    feed.on_unit("audio", "OPUS", Unit(b"s", 0, has_gap=False))
    assert feed.wait_opened(0.0) is None
    send(feed, 0)
    source = feed.wait_opened(0.0)
    assert source is not None
    assert source.decoder.name == "h264"
    assert source.audio is not None
    assert source.audio.codec == "opus"
    assert [feed.get(0.0).is_video for _ in range(2)] == [False, True]
    assert feed.get(0.0) is None


@pytest.mark.parametrize(("has_sound", "audio"), [(False, True), (True, False)])
def test_sound_that_is_not_sent_or_not_wanted_is_not_told(has_sound, audio):
    feed = make_feed(has_sound=has_sound, audio=audio)
    send(feed, 0)
    source = feed.wait_opened(0.0)
    assert source is not None
    assert source.audio is None


def test_a_decoder_that_is_behind_goes_on_with_what_is_new():
    feed = make_feed()
    for number in range(MAX_ITEMS + 3):
        send(feed, number)
    first = feed.get(0.0)
    assert first is not None
    assert first.dropped_before == MAX_ITEMS
    assert first.packet.pts == MAX_ITEMS * 3000


def test_a_gap_is_told_with_the_picture_behind_it():
    feed = make_feed()
    send(feed, 0)
    send(feed, 3, has_gap=True)
    assert [feed.get(0.0).dropped_before for _ in range(2)] == [0, 1]


def test_the_end_comes_after_all_that_was_sent():
    feed = make_feed()
    send(feed, 0)
    feed.on_end(Ending("silent", "it fell silent", "look there"))
    feed.on_end()
    assert feed.get(0.0) is not None
    with pytest.raises(ReaderEnded) as caught:
        feed.get(0.0)
    assert str(caught.value.cause) == "it fell silent: look there"


def test_whoever_waits_is_woken():
    feed = make_feed()
    threading.Timer(0.05, feed.on_end).start()
    with pytest.raises(ReaderEnded):
        feed.wait_opened(10.0)
