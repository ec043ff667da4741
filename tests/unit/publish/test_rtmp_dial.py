"""Where a target of another's job is dialled: by the address that was judged, each time anew."""

import socket

import pytest

from livefuse.config import AccessConfig
from livefuse.errors import PublishConnectError, PublishRejectedError
from livefuse.packet import StreamsInfo
from livefuse.publish.rtmp_child import Task, _build_tee_name
from livefuse.publish.rtmp_dial import TargetDialler

ON = AccessConfig(restrict="on")
SECRET = "s3cr3tk3yofmine"


def make_task(url):
    return Task(url, StreamsInfo(None, None))


def test_the_owner_dials_by_name():
    task = make_task(f"rtmp://localhost/live/{SECRET}")
    for access in (None, AccessConfig(), AccessConfig(restrict="off")):
        assert TargetDialler(access).choose(task) is task


def test_a_name_that_moves_is_judged_anew_and_each_address_gets_its_turn():
    answers = [["198.41.0.4", "198.41.0.5"], ["198.41.0.4", "198.41.0.5"], ["127.0.0.1"]]
    dialler = TargetDialler(ON, lambda _host: answers.pop(0))
    task = make_task(f"rtmp://cdn.example/live/{SECRET}")
    first = dialler.choose(task)
    assert first.url == f"rtmp://198.41.0.4/live/{SECRET}"
    assert first.tcurl == "rtmp://cdn.example:1935/live"
    assert "rtmp_tcurl=rtmp" in _build_tee_name(first)
    assert dialler.choose(task).url.startswith("rtmp://198.41.0.5/")
    with pytest.raises(PublishRejectedError) as caught:
        dialler.choose(task)
    assert SECRET not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


def test_by_tls_the_certificate_is_checked_against_the_name():
    dialler = TargetDialler(ON, lambda _host: ["198.41.0.4"])
    task = make_task(f"rtmps://cdn.example/live/{SECRET}")
    assert dialler.choose(task) is task
    with pytest.raises(PublishRejectedError):
        TargetDialler(ON, lambda _host: ["10.0.0.1"]).choose(task)


def test_who_is_not_found_is_tried_again_later():
    def resolve(_host):
        raise socket.gaierror("no such name")

    with pytest.raises(PublishConnectError) as caught:
        TargetDialler(ON, resolve).choose(make_task("rtmp://gone.example/live/k"))
    assert caught.value.retryable
