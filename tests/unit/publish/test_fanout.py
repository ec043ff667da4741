"""Many outputs, none of which harms another; and how they are made."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import structlog

from livefuse.clock import ManualClock, SystemClock
from livefuse.config import Config, HttpConfig
from livefuse.errors import ConfigError, JobError, JobNotFoundError, PublishConnectError
from livefuse.publish import create_output, is_file_url
from livefuse.publish.base import OutputStatus
from livefuse.publish.fanout import FanOut
from livefuse.publish.flv import LiveStream
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.publish.record import FileOutput
from livefuse.publish.rtmp import RtmpOutput
from livefuse.publish.virtualcam import VirtualCameraOutput
from tests.streams import make_media, read_back


class FakeOutput:
    def __init__(self, *, fails=False, closing=None):
        self.fails = fails
        self.closing = closing
        self.got = []
        self.streams = None
        self.is_closed = False

    def open(self, streams):
        self.streams = streams

    def send(self, packet):
        self.got.append(packet)
        if self.fails:
            raise RuntimeError("secret://user:word@host broke")

    def close(self, timeout_s):
        if self.closing is not None:
            self.closing.wait(timeout_s)
        self.is_closed = True

    def status(self):
        return OutputStatus(kind="fake", url="fake:", state="live", connected=True)


def _make(*outputs):
    forced = []
    keyframes = KeyframeRequests(ManualClock(), lambda: forced.append(1))
    made = {f"fake:{n}": output for n, output in enumerate(outputs)}
    fanout = FanOut(made.__getitem__, {}, keyframes)
    for url in made:
        fanout.add(url)
    return fanout, forced


def _count_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_an_output_that_is_refused_leaves_nothing_open():
    """Somebody who asks for the same output again and again must not use up the descriptors."""
    before = _count_descriptors()
    fanout = FanOut.create(
        ("rtmp://127.0.0.1/live/key",), Config(), ManualClock(), lambda: None, lossless=False
    )
    for _ in range(5):
        with pytest.raises(JobError, match="already"):
            fanout.add("rtmp://127.0.0.1/live/key")
    assert _count_descriptors() == before


def test_one_that_fails_does_not_harm_the_others():
    bad, good = FakeOutput(fails=True), FakeOutput()
    fanout, _ = _make(bad, good)
    media = make_media()
    fanout.open(media.streams)
    with structlog.testing.capture_logs() as said:
        for packet in media.packets:
            fanout.send(packet)
    assert good.got == media.packets
    assert [entry["event"] for entry in said] == ["output failed"]
    assert "word" not in str(said)
    assert "broke" in said[0]["cause"]
    fanout.close(1)
    assert bad.is_closed
    assert good.is_closed


def test_targets_streams_and_wishes_come_together(tmp_path):
    forced = []
    path = tmp_path / "out.flv"
    fanout = FanOut.create(
        (str(path),), Config(), SystemClock(), lambda: forced.append(1), lossless=False
    )
    media = make_media()
    fanout.open(media.streams)
    assert [status.kind for status in fanout.statuses()] == ["file"]
    viewers = [fanout.live[kind].subscribe(lambda: None) for kind in ("flv", "ts")]
    assert forced == [1], "two wishes, one keyframe"
    for packet in media.packets:
        fanout.send(packet)
    assert [status.kind for status in fanout.statuses()] == ["file", "http-flv", "http-ts"]
    assert all(len(viewer.read() or b"") > 1000 for viewer in viewers)
    fanout.close(5)
    assert all(viewer.read() is None for viewer in viewers)
    assert path.stat().st_size > 1000


def test_an_output_that_comes_later_starts_with_the_header_and_asks_for_a_keyframe(tmp_path):
    forced = []
    fanout = FanOut.create((), Config(), SystemClock(), lambda: forced.append(1), lossless=False)
    media = make_media(120)
    fanout.open(media.streams)
    middle = len(media.packets) // 3
    for packet in media.packets[:middle]:
        fanout.send(packet)
    path = tmp_path / "later.mkv"
    name = fanout.add(str(path)).id
    assert forced == [1]
    assert [(status.id, status.state) for status in fanout.statuses()] == [(name, "connecting")]
    for packet in media.packets[middle:]:
        fanout.send(packet)
    fanout.remove(name)
    assert fanout.statuses() == []
    fanout.close(5)
    found = read_back(path)
    assert found.packets[0].is_keyframe
    assert found.codecs == ["h264", "aac"]
    assert found.corrupt == 0
    assert 55 <= len(found.pictures) < 120
    assert found.pictures[0] == 0, "a recording begins at 0, whenever it was asked for"


def test_removing_one_that_hangs_blocks_neither_the_caller_nor_the_others():
    gate = threading.Event()
    hangs, good = FakeOutput(closing=gate), FakeOutput()
    fanout, _ = _make(hangs, good)
    media = make_media()
    fanout.open(media.streams)
    before = time.monotonic()
    fanout.remove("fake:0", timeout_s=30)
    assert time.monotonic() - before < 1
    fanout.send(media.packets[0])
    assert hangs.got == []
    assert good.got == media.packets[:1]
    assert not hangs.is_closed
    gate.set()
    fanout.close(5)
    assert hangs.is_closed


def test_outputs_are_named_by_ids_that_stay():
    fanout, _ = _make(FakeOutput(), FakeOutput(), FakeOutput())
    fanout.remove("2")
    assert [status.id for status in fanout.statuses()] == ["1", "3"]
    with pytest.raises(JobNotFoundError, match="no output") as caught:
        fanout.remove("2")
    assert "1, 3" in caught.value.hint


def test_what_may_not_be_added_says_why(tmp_path):
    url = "rtmp://127.0.0.1:1/live/streamkey"
    fanout = FanOut.create((url,), Config(), SystemClock(), lambda: None, lossless=False)
    with pytest.raises(JobError, match="already") as caught:
        fanout.add(url)
    assert "streamkey" not in str(caught.value)
    with pytest.raises(ConfigError):
        fanout.add("rtpm://h/live/k")
    with pytest.raises(PublishConnectError):
        fanout.add(str(tmp_path / "no" / "b.mp4"))
    fanout.close(1)
    with pytest.raises(JobError, match="over"):
        fanout.add(str(tmp_path / "b.mp4"))


def test_outputs_may_come_and_go_while_packets_are_sent():
    fanout = FanOut(lambda _url: FakeOutput(), {}, KeyframeRequests(SystemClock(), lambda: None))
    media = make_media()
    fanout.open(media.streams)
    over = threading.Event()

    def come_and_go(number):
        while not over.is_set():
            fanout.remove(fanout.add(f"{number}:{time.monotonic_ns()}").id)

    threads = [threading.Thread(target=come_and_go, args=(n,), daemon=True) for n in range(2)]
    for thread in threads:
        thread.start()
    for packet in media.packets * 3:
        fanout.send(packet)
        fanout.statuses()
    over.set()
    for thread in threads:
        thread.join(5)
    fanout.close(5)
    assert fanout.statuses() == []


def test_what_goes_as_fast_as_it_can_has_no_streams_to_watch(tmp_path):
    fanout = FanOut.create(
        (str(tmp_path / "out.flv"),), Config(), SystemClock(), lambda: None, lossless=True
    )
    assert fanout.live == {}


def test_a_target_that_cannot_be_checked_is_refused_before_anything_is_opened(tmp_path):
    with pytest.raises(PublishConnectError):
        FanOut.create(
            (str(tmp_path / "a.mp4"), str(tmp_path / "no" / "b.mp4")),
            Config(),
            SystemClock(),
            lambda: None,
            lossless=False,
        )
    assert list(tmp_path.iterdir()) == []


def _create(url):
    return create_output(url, Config(), SystemClock(), lambda: None, lossless=False)


def test_each_url_finds_its_output(tmp_path):
    assert isinstance(_create("rtmp://127.0.0.1/live/key"), RtmpOutput)
    assert isinstance(_create("rtmps://h.example:443/app/key"), RtmpOutput)
    assert isinstance(_create(str(tmp_path / "x.mkv")), FileOutput)
    assert isinstance(_create(f"file://{tmp_path}/x.mkv"), FileOutput)
    camera = _create("virtualcam:/dev/video9")
    assert isinstance(camera, VirtualCameraOutput)
    assert camera.status().url == "virtualcam:/dev/video9"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("rtpm://user:geheim@h/live/streamkey", "did you mean rtmp"),
        ("http://h/live.flv", "players fetch"),
        ("ftp://h/x", "rtmps:"),
        ("out.avi", ".mp4"),
        ("out", ".mp4"),
        ("rtmp://h/live", "rtmp://HOST/APPLICATION/KEY"),
        ("rtmp:///live/key", "rtmp://HOST/APPLICATION/KEY"),
    ],
)
def test_what_cannot_be_understood_names_the_choices_and_no_secret(url, words):
    with pytest.raises(ConfigError) as caught:
        _create(url)
    assert words in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert "streamkey" not in str(caught.value)


def test_files_are_told_from_streams():
    assert is_file_url("out.mp4")
    assert is_file_url("/tmp/a:b.mp4")
    assert is_file_url("FILE:///tmp/x.mp4")
    assert not is_file_url("rtmp://h/a/k")
    assert not is_file_url("virtualcam:")


def test_a_stream_for_players_that_fails_harms_nobody():
    class Failing(LiveStream):
        def send(self, packet):
            raise RuntimeError("no")

    good, clock = FakeOutput(), ManualClock()
    keyframes = KeyframeRequests(clock, lambda: None)
    players: dict[str, LiveStream] = {"flv": Failing("flv", HttpConfig(), lambda: None, clock)}
    fanout = FanOut({"fake:0": good}.__getitem__, players, keyframes)
    fanout.add("fake:0")
    media = make_media()
    fanout.open(media.streams)
    with structlog.testing.capture_logs() as said:
        for packet in media.packets:
            fanout.send(packet)
    assert good.got == media.packets
    assert [entry["event"] for entry in said] == ["players get no stream"]
    fanout.close(1)
