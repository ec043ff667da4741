"""H.264 cut for RTP and put together again by aiortc, byte for byte."""

from aiortc.codecs.h264 import h264_depayload
from hypothesis import given
from hypothesis import strategies as st

from livefuse.publish.h264 import split_nals
from livefuse.rtc.payload import MAX_PAYLOAD_BYTES, packetize_h264
from tests.streams import make_media

UNITS = st.builds(
    lambda kind, body: bytes((0x60 | kind,)) + body + b"\x80",
    st.integers(1, 23),
    st.binary(min_size=1, max_size=4000).map(lambda body: body.replace(b"\0", b"\1")),
)


@given(st.lists(UNITS, max_size=8))
def test_what_is_cut_is_whole_again(nals):
    payloads = packetize_h264(nals)
    assert all(len(payload) <= MAX_PAYLOAD_BYTES for payload in payloads)
    assert split_nals(b"".join(map(h264_depayload, payloads))) == nals


def test_real_pictures_of_the_encoder_are_whole_again():
    for packet in make_media(30).video:
        nals = split_nals(packet.data)
        payloads = packetize_h264(nals, 300)
        assert split_nals(b"".join(map(h264_depayload, payloads))) == nals
        assert len(payloads) < len(packet.data) / 300 + len(nals) + 1


def test_parameter_sets_share_a_packet():
    assert len(packetize_h264([b"\x67" + b"a" * 20, b"\x68bb", b"\x06" + b"c" * 30])) == 1


def test_nothing_gives_nothing():
    assert packetize_h264([]) == []
