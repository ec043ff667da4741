"""Packets on a pipe: what goes in comes out, whatever is cut off."""

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.packet import (
    AudioInfo,
    Packet,
    StreamsInfo,
    VideoInfo,
    encode_info,
    encode_packet,
    iter_messages,
)

_TIMES = st.integers(-(2**62), 2**62)
_PACKETS = st.builds(
    Packet,
    kind=st.sampled_from(["video", "audio"]),
    data=st.binary(max_size=200),
    pts=_TIMES,
    dts=_TIMES,
    duration=st.integers(0, 2**31),
    is_keyframe=st.booleans(),
)


@given(st.lists(_PACKETS, max_size=5), st.integers(0, 400))
def test_packets_survive_the_pipe_and_a_cut_ends_it_cleanly(packets, cut):
    data = b"".join(map(encode_packet, packets))
    assert list(iter_messages(io.BytesIO(data))) == packets
    whole = list(iter_messages(io.BytesIO(data[: max(len(data) - cut, 0)])))
    assert whole == packets[: len(whole)]


def test_descriptions_travel_between_packets():
    info = StreamsInfo(VideoInfo("h264", 640, 360, extradata=b"\x01"), AudioInfo("aac", 48_000, 2))
    packet = Packet("audio", b"x", 1, 1)
    stream = io.BytesIO(encode_info(info) + encode_packet(packet))
    first, second = iter_messages(stream)
    assert isinstance(first, bytes)
    assert msgspec.msgpack.decode(first, type=StreamsInfo) == info
    assert second == packet


def test_an_unbelievable_size_is_refused():
    head = bytearray(encode_packet(Packet("video", b"", 0, 0)))
    head[-4:] = (2**31 - 1).to_bytes(4, "little")
    with pytest.raises(ValueError, match="not believable"):
        list(iter_messages(io.BytesIO(bytes(head))))
