"""Many outputs, none of which harms another; and how they are made."""

from __future__ import annotations

import pytest

from livefuse.clock import ManualClock, SystemClock
from livefuse.config import Config
from livefuse.errors import ConfigError, PublishConnectError
from livefuse.publish import create_output, is_file_url
from livefuse.publish.base import OutputStatus
from livefuse.publish.fanout import FanOut
from livefuse.publish.keyframes import KeyframeRequests
from livefuse.publish.record import FileOutput
from livefuse.publish.rtmp import RtmpOutput
from livefuse.publish.virtualcam import VirtualCameraOutput
from tests.streams import make_media


class FakeOutput:
    def __init__(self, *, fails=False):
        self.fails = fails
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
        self.is_closed = True

    def status(self):
        return OutputStatus(kind="fake", url="fake:", state="live", connected=True)


def _make(*outputs):
    forced = []
    keyframes = KeyframeRequests(ManualClock(), lambda: forced.append(1))
    made = dict(enumerate(outputs))
    fanout = FanOut(lambda url: made[int(url)], {}, keyframes)
    for url in made:
        fanout.add(str(url))
    return fanout, forced


def test_one_that_fails_does_not_harm_the_others(capsys):
    bad, good = FakeOutput(fails=True), FakeOutput()
    fanout, _ = _make(bad, good)
    media = make_media()
    fanout.open(media.streams)
    for packet in media.packets:
        fanout.send(packet)
    assert good.got == media.packets
    said = capsys.readouterr()
    assert (said.out + said.err).count("output failed") == 1
    assert "word" not in said.out + said.err
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
