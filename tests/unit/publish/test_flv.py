"""Onlookers: muxed once, each at its own pace (C02, C03)."""

from __future__ import annotations

import threading

import pytest

from livefuse.config import HttpConfig
from livefuse.publish.flv import LiveStream
from tests.streams import make_media, read_back


def _make(form="flv", limit=4_000_000, media=None):
    wishes = []
    stream = LiveStream(form, HttpConfig(viewer_queue_bytes=limit), lambda: wishes.append(1))
    media = media or make_media()
    stream.open(media.streams)
    return stream, media, wishes


def _count_pictures(data, form):
    return len(read_back(data, {"flv": "flv", "ts": "mpegts"}[form]).pictures)


@pytest.mark.parametrize("form", ["flv", "ts"])
def test_a_viewer_gets_the_header_at_once_and_then_a_keyframe(form):
    stream, media, wishes = _make(form)
    viewer = stream.subscribe(lambda: None)
    header = viewer.read()
    assert header
    assert viewer.read() == b""
    assert wishes == [1]
    for packet in media.packets[20:]:
        stream.send(packet)
    first = next(i for i, p in enumerate(media.video) if p.dts >= media.packets[20].dts)
    keyframe = next(i for i, p in enumerate(media.video) if i >= first and p.is_keyframe)
    assert _count_pictures(header + viewer.read(), form) == len(media.video) - keyframe


def test_nothing_is_muxed_while_nobody_watches():
    stream, media, _ = _make()
    for packet in media.packets:
        stream.send(packet)
    assert stream.status().packets == 0
    viewer = stream.subscribe(lambda: None)
    assert len(viewer.read()) < 1000  # the header alone: nothing was kept


@pytest.mark.parametrize("form", ["flv", "ts"])
def test_who_comes_later_sees_nothing_of_before(form):
    """(C02) Others watch, so there are pictures: the last keyframe is as old as it is."""
    stream, media, wishes = _make(form)
    stream.subscribe(lambda: None)
    for packet in media.packets[:20]:
        stream.send(packet)
    viewer = stream.subscribe(lambda: None)
    header = viewer.read()
    assert _count_pictures(header, form) == 0
    assert len(wishes) == 2
    for packet in media.packets[20:]:
        stream.send(packet)
    first = next(i for i, p in enumerate(media.video) if p.dts >= media.packets[20].dts)
    keyframe = next(i for i, p in enumerate(media.video) if i >= first and p.is_keyframe)
    assert _count_pictures(header + viewer.read(), form) == len(media.video) - keyframe


def test_a_slow_viewer_skips_to_a_keyframe_and_the_other_does_not_notice():
    media = make_media(120)
    size = sum(len(packet.data) for packet in media.packets)
    stream, _, _ = _make(limit=size // 4, media=media)
    slow, quick = stream.subscribe(lambda: None), stream.subscribe(lambda: None)
    got = {"slow": [slow.read()], "quick": [quick.read()]}
    for index, packet in enumerate(media.packets):
        stream.send(packet)
        got["quick"].append(quick.read())
        if index % 100 == 99:
            got["slow"].append(slow.read())
    got["slow"].append(slow.read())
    assert quick.dropped == 0
    assert slow.dropped > 0
    assert stream.status().dropped == slow.dropped
    assert _count_pictures(b"".join(got["quick"]), "flv") == 120
    # What the slow one has can be decoded without a fault: it starts anew at a keyframe.
    found = read_back(b"".join(got["slow"]), "flv")
    assert 0 < len(found.pictures) < 120
    assert found.corrupt == 0


def test_a_viewer_keeps_no_more_than_its_limit():
    media = make_media(120)
    stream, _, _ = _make(limit=20_000, media=media)
    viewer = stream.subscribe(lambda: None)
    viewer.read()
    for packet in media.packets:
        stream.send(packet)
    assert len(viewer.read()) <= 20_000


def test_a_viewer_is_woken_from_the_sending_thread():
    stream, media, _ = _make()
    woken = threading.Event()
    viewer = stream.subscribe(woken.set)
    woken.clear()
    thread = threading.Thread(target=lambda: [stream.send(p) for p in media.packets])
    thread.start()
    assert woken.wait(5)
    thread.join()
    assert viewer.read()


def test_a_viewer_reads_what_is_left_and_then_the_end():
    stream, media, _ = _make()
    woken = []
    viewer = stream.subscribe(lambda: woken.append(1))
    for packet in media.packets:
        stream.send(packet)
    woken.clear()
    stream.close(1.0)
    assert woken
    assert viewer.read()
    assert viewer.read() is None
    late = stream.subscribe(lambda: None)
    late.read()
    assert late.read() is None


def test_a_viewer_that_comes_before_the_stream_is_served_too():
    media = make_media()
    stream = LiveStream("flv", HttpConfig(), lambda: None)
    viewer = stream.subscribe(lambda: None)
    assert viewer.read() == b""
    stream.open(media.streams)
    for packet in media.packets:
        stream.send(packet)
    assert (viewer.read() or b"").startswith(b"FLV")


def test_one_who_leaves_is_forgotten_but_counted():
    stream, media, _ = _make(limit=2_000)
    viewer = stream.subscribe(lambda: None)
    for packet in media.packets:
        stream.send(packet)
    dropped = viewer.dropped
    viewer.close()
    viewer.close()
    assert (stream.status().viewers, stream.status().dropped) == (0, dropped)
    assert dropped > 0
