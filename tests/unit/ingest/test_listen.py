"""What the listener's two processes tell each other, and what they make of it."""

from __future__ import annotations

import io
import socket

import msgspec
import pytest

from livefuse.clock import SystemClock
from livefuse.config import IngestConfig
from livefuse.errors import IngestAuthError, IngestConnectError, IngestUnsupportedError
from livefuse.ingest.listen import ListenIngest, _iter_packets, check_address, describe_fault
from livefuse.ingest.listen_child import NO_STAMP, Hello, Order, Renewal, is_refused
from livefuse.ingest.source import read_new_extradata
from livefuse.packet import (
    AudioInfo,
    Packet,
    StreamsInfo,
    VideoInfo,
    encode_info,
    encode_packet,
    iter_messages,
)
from tests.sinks import CollectingSink

URL = "rtmp://127.0.0.1:1935/live/myS3cretKey"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("key", IngestAuthError),
        ("no_video", IngestUnsupportedError),
        ("Address already in use", IngestConnectError),
    ],
)
def test_faults_are_told_without_the_key(fault, kind):
    """C76."""
    found = describe_fault(fault, URL)
    assert type(found) is kind
    assert "myS3cretKey" not in str(found)


def test_log_of_another_key_or_app_is_a_refusal():
    assert is_refused([(24, "rtmp", "Unexpected stream wrong, expecting key\n")])
    assert is_refused([(24, "rtmp", "App field don't match up: a <-> b\n")])
    assert not is_refused([(24, "flv", "something else")])


def test_messages_survive_the_pipe():
    order = Order(URL, 5000, {"listen": "1"})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(order), type=Order) == order
    hello = Hello(StreamsInfo(VideoInfo("h264", 2, 2, extradata=b"\1"), AudioInfo("aac", 48000, 2)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(hello), type=Hello) == hello


def test_new_parameter_sets_go_with_the_next_picture():
    pipe = io.BytesIO(
        encode_packet(Packet("video", b"1", 0, NO_STAMP))
        + encode_info(Renewal(b"other"))
        + encode_packet(Packet("audio", b"2", 1, 1))
        + encode_packet(Packet("video", b"3", 2, 2))
        + encode_packet(Packet("video", b"4", 3, 3))
    )
    found = [
        (bytes(p), p.dts, read_new_extradata(p)) for _, p in _iter_packets(iter_messages(pipe))
    ]
    assert found == [(b"1", None, None), (b"2", 1, None), (b"3", 2, b"other"), (b"4", 3, None)]


def test_taken_port_is_said_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"rtmp://127.0.0.1:{listener.getsockname()[1]}/live/k"
        with pytest.raises(IngestConnectError, match="in use"):
            ListenIngest(f"listen:{url}", IngestConfig(), SystemClock()).run(CollectingSink())


def test_foreign_address_cannot_be_listened_on():
    with pytest.raises(IngestConnectError, match="cannot listen"):
        check_address("rtmp://192.0.2.1:1935/live/key")
