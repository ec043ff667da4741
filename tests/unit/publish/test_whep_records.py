"""Records on the way to browsers: they arrive, or are left out where that is wanted."""

import pytest
from aiortc.codecs import depayload
from aiortc.rtcrtpparameters import RTCRtpCodecParameters

from livefuse.clock import ManualClock
from livefuse.config import Config, MarkConfig, WebRtcConfig
from livefuse.publish.fanout import FanOut
from livefuse.publish.h264 import split_nals
from livefuse.publish.sei import is_record, read_sei_marks, verify_record
from livefuse.publish.whep import WhepOutput
from tests.marked import PUBLIC, mark_media
from tests.streams import make_media

H264 = RTCRtpCodecParameters(mimeType="video/H264", clockRate=90000, payloadType=96)


class Viewer:
    """Keeps what a viewer is to get."""

    session = None
    dropped = 0


def send_to_viewer(media, *, has_records):
    """Return the access units that aiortc's receiver makes of what is sent."""
    whep = WhepOutput(WebRtcConfig(), ManualClock(), lambda: None, has_records=has_records)
    whep._viewers = (Viewer(),)  # type: ignore[assignment] # only that there is one
    units = []

    def pass_on(viewers, kind, unit, *, is_keyframe):
        units.append(b"".join(depayload(H264, payload) for payload in unit.payloads))

    whep._pass_on = pass_on  # type: ignore[method-assign] # what goes to the loop of peers
    whep.open(media.streams)
    for packet in media.video:
        whep.send(packet)
    return units


def test_a_receiver_gets_the_record_of_each_keyframe():
    media = mark_media(make_media())
    units = send_to_viewer(media, has_records=True)
    assert [split_nals(unit) for unit in units] == [split_nals(p.data) for p in media.video]
    assert [mark.verdict for mark in read_sei_marks(units, PUBLIC)] == ["valid", "valid"]


def test_the_record_is_left_out_and_nothing_else():
    media = mark_media(make_media())
    units = send_to_viewer(media, has_records=False)
    assert not any(is_record(nal) for unit in units for nal in split_nals(unit))
    for unit, packet in zip(units, media.video, strict=True):
        assert split_nals(unit) == [n for n in split_nals(packet.data) if not is_record(n)]
    # All other outputs share the packet: it still has its record.
    assert verify_record(media.video[0].data, PUBLIC).verdict == "valid"


@pytest.mark.parametrize("webrtc_sei", [True, False])
def test_the_configuration_says_which(webrtc_sei):
    config = Config(mark=MarkConfig(webrtc_sei=webrtc_sei))
    fanout = FanOut.create((), config, ManualClock(), lambda: None, lossless=False)
    assert fanout.whep is not None
    assert fanout.whep._has_records is webrtc_sei
