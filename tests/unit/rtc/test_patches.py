"""Each fault of aiortc 1.16 and aioice 0.13 as they come, and that it is mended.

A test `..._is_still_so` that fails tells good news: the work-around of that name can go.
"""

import asyncio
import inspect
import time
from typing import Any

import aioice.ice
import ifaddr
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, codecs
from aiortc.jitterbuffer import JitterBuffer
from aiortc.rate import RemoteBitrateEstimator
from aiortc.rtcrtpparameters import RTCRtpHeaderExtensionParameters, RTCRtpSendParameters
from aiortc.rtcrtpreceiver import NackGenerator, RemoteStreamTrack
from aiortc.rtp import (
    HeaderExtensionsMap,
    RtcpSenderInfo,
    RtcpSrPacket,
    RtpPacket,
    unpack_header_extensions,
)

from livefuse.rtc import patches
from livefuse.rtc.payload import Payloads
from livefuse.rtc.peer import list_codecs


def make_packet(sequence, timestamp=0, *, marker=0, payload=b"\x41data"):
    packet: Any = RtpPacket(
        payload_type=97, sequence_number=sequence, timestamp=timestamp, marker=marker
    )
    packet.ssrc = 7
    packet.payload = payload
    packet._data = payload
    return packet


def run(work):
    async def guarded():
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(guarded())


class Track:
    last_pts: int | None = None


class Sink:
    def __init__(self):
        self.units, self.ends = [], 0

    def on_unit(self, codec, unit):
        self.units.append((codec, unit))

    def on_end(self):
        self.ends += 1


def test_a_marked_picture_waits_for_the_next_is_still_so():
    buffer = JitterBuffer(capacity=16, is_video=True)
    assert buffer.add(make_packet(1, marker=1)) == (False, None)
    assert buffer.add(make_packet(2, 3000, marker=1))[1] is not None


def test_sound_waits_for_four_packets_is_still_so():
    buffer = JitterBuffer(capacity=16, prefetch=4)
    frames = [buffer.add(make_packet(i, i * 960))[1] for i in range(6)]
    assert [frame is not None for frame in frames] == [False] * 4 + [True] * 2


def test_a_lost_packet_is_asked_for_once_is_still_so():
    nacks = NackGenerator()
    asked = [nacks.add(make_packet(sequence)) for sequence in (1, 3, 4, 5, 6)]
    assert asked == [False, True, False, False, False]
    assert nacks.missing == {2}


def test_a_pause_of_this_process_slows_the_sender_down_is_still_so():
    estimator, told = RemoteBitrateEstimator(), []
    for packet in range(600):
        sent_ms = packet * 10
        pause_ms = max(40 * (packet - 300), 0) if packet < 350 else 0
        remb = estimator.add(sent_ms + pause_ms, sent_ms * 2**18 // 1000 % 2**24, 1200, 7)
        told += [remb[0]] if remb else []
    assert min(told[-20:]) < 1_200_000


def test_received_frames_queue_without_a_bound_is_still_so():
    async def look(_connection):
        return RemoteStreamTrack("video")._queue.maxsize

    assert run(look) == 0


def test_a_tapped_receiver_gives_a_picture_with_its_last_packet():
    async def work(connection):
        receiver = connection.addTransceiver("video", "recvonly").receiver
        receiver._RTCRtpReceiver__codecs[97] = list_codec("video/VP8")
        sink = Sink()
        tap = patches.tap_receiver(receiver, sink, lambda: 0.0, 5_000_000)
        buffer = receiver._RTCRtpReceiver__jitter_buffer
        assert buffer.add(make_packet(1)) == (False, None)
        assert buffer.add(make_packet(2, marker=1)) == (False, None)
        nacks = receiver._RTCRtpReceiver__nack_generator
        nacks.add(make_packet(2))
        assert nacks.add(make_packet(4))
        estimator = receiver._RTCRtpReceiver__remote_bitrate_estimator
        times = {"abs_send_time": 0, "payload_size": 1000, "ssrc": 7}
        assert estimator.add(arrival_time_ms=0, **times) == (5_000_000, [7])
        assert estimator.add(arrival_time_ms=900, **times) is None
        queue = receiver._RTCRtpReceiver__decoder_queue
        queue.put(None)
        queue.put(None)
        assert queue.get() is None
        return sink, tap.ssrc

    sink, ssrc = run(work)
    ((codec, unit),) = sink.units
    assert (codec, unit.data, ssrc, sink.ends) == ("VP8", b"\x41data\x41data", 7, 1)


def list_codec(mime_type):
    return next(codec for codec in codecs.CODECS["video"] if codec.mimeType == mime_type)


def test_only_baseline_is_known_is_still_so():
    known = [str(c.parameters.get("profile-level-id", "")) for c in codecs.CODECS["video"]]
    own = {profile for profile in known if profile} - set(patches._PROFILES)
    assert own == {"42001f", "42e01f"}


def test_profiles_are_added_once_and_numbers_stay_apart():
    patches.add_h264_profiles()
    count = len(codecs.CODECS["video"])
    patches.add_h264_profiles()
    numbers = [codec.payloadType or 0 for codec in codecs.CODECS["video"]]
    assert len(numbers) == len(set(numbers)) == count
    assert max(numbers) < 128


@pytest.mark.parametrize(("profile", "first"), [("640028", "64001f"), ("", "42e01f")])
def test_the_streams_own_profile_is_preferred(profile, first):
    offered = list_codecs("video", profile=profile, h264_only=True)
    assert offered[0].parameters["profile-level-id"] == first
    assert {codec.mimeType for codec in offered} == {"video/H264", "video/rtx"}
    assert [c.mimeType for c in list_codecs("audio")] == ["audio/opus"]
    assert "video/VP8" in {codec.mimeType for codec in list_codecs("video")}


def test_a_wish_for_a_keyframe_stays_in_the_sender_is_still_so():
    source = inspect.getsource(RTCRtpSender._send_keyframe)
    assert "__force_keyframe = True" in source
    assert "emit" not in source


def test_a_wish_for_a_keyframe_is_passed_on():
    async def work(connection):
        sender = connection.addTransceiver("video", "sendonly").sender
        wishes = []
        patches.hook_keyframes(sender, lambda: wishes.append(1))
        sender._send_keyframe()
        return wishes

    assert run(work) == [1]


def test_reports_name_the_time_of_sending_is_still_so():
    assert "self.__ntp_timestamp = clock.current_ntp_time()" in inspect.getsource(
        RTCRtpSender._run_rtp
    )


def test_reports_name_the_instant_of_what_was_sent():
    async def work(connection):
        sender = connection.addTransceiver("video", "sendonly").sender
        sent = []

        async def keep(packets):
            sent.extend(packets)

        sender._send_rtcp = keep
        track = Track()
        patches.stamp_reports(sender, track, lambda pts: pts * 10)
        for pts in (None, 4):
            track.last_pts = pts
            await sender._send_rtcp([RtcpSrPacket(1, RtcpSenderInfo(99, 1, 1, 1))])
        return [packet.sender_info.ntp_timestamp for packet in sent]

    assert run(work) == [99, 40]


def test_reports_of_the_other_end_are_told():
    async def work(connection):
        receiver = connection.addTransceiver("video", "recvonly").receiver
        told = []
        patches.tap_reports(receiver, lambda *report: told.append(report))
        await receiver._handle_rtcp_packet(RtcpSrPacket(1, RtcpSenderInfo(5, 6, 1, 1)))
        return told

    assert run(work) == [(5, 6)]


def test_packets_are_cut_for_each_viewer_is_still_so():
    assert "self.__encoder.pack(data)" in inspect.getsource(RTCRtpSender._next_encoded_frame)


def test_a_sender_takes_payloads_as_they_are():
    async def work(connection):
        sender = connection.addTransceiver("video", "sendonly").sender
        patches.set_packer(sender)
        return sender._RTCRtpSender__encoder.pack(Payloads([b"a"], 9, 9))

    assert run(work) == ([b"a"], 9)


def test_viewers_cannot_be_told_how_long_to_wait_is_still_so():
    known = [one.uri for kind in codecs.HEADER_EXTENSIONS.values() for one in kind]
    assert patches.PLAYOUT_DELAY not in known
    assert "playout" not in inspect.getsource(HeaderExtensionsMap)


@pytest.mark.parametrize(("number", "is_told"), [(7, True), (15, False), (0, False), (None, False)])
def test_a_picture_is_to_be_shown_at_once(number, is_told):
    offered = {"urn:other": 3} | ({patches.PLAYOUT_DELAY: number} if number is not None else {})
    mid = "urn:ietf:params:rtp-hdrext:sdes:mid"

    async def work(connection):
        transceiver = connection.addTransceiver("video", "sendonly")
        transceiver._headerExtensions = [RTCRtpHeaderExtensionParameters(id=4, uri=mid)]
        patches.ask_for_no_delay(transceiver, offered)
        listed = transceiver._headerExtensions
        extensions = transceiver.sender._RTCRtpSender__rtp_header_extensions_map
        extensions.configure(RTCRtpSendParameters(headerExtensions=listed))
        packet = make_packet(1)
        packet.extensions.mid = "0"
        data = packet.serialize(extensions)
        return [one.uri for one in listed], unpack_header_extensions(0xBEDE, data[16:-5])

    told = [(number, bytes(3))] if is_told else []
    uris = [mid, patches.PLAYOUT_DELAY] if is_told else [mid]
    assert run(work) == (uris, [(4, b"0"), *told])


def test_loopback_is_left_out_and_a_silent_server_waited_for_is_still_so(monkeypatch):
    class Adapter:
        class Ip:
            ip = "127.0.0.1"

        ips = (Ip,)

    monkeypatch.setattr(ifaddr, "get_adapters", lambda: [Adapter])
    assert aioice.ice.get_host_addresses(use_ipv4=True, use_ipv6=False) == []
    gather = inspect.signature(aioice.ice.Connection.get_component_candidates)
    assert gather.parameters["timeout"].default == 5


def test_gathering_keeps_to_the_addresses_and_the_time_given():
    """C71: the server is a port where nobody answers."""

    async def gather():
        connection = aioice.ice.Connection(
            ice_controlling=False, stun_server=("127.0.0.1", 9), use_ipv6=False
        )
        patches.limit_gathering(connection, ["127.0.0.1"], 0.2)
        started = time.monotonic()
        await connection.gather_candidates()
        took_s = time.monotonic() - started
        hosts = [candidate.host for candidate in connection.local_candidates]
        await connection.close()
        return hosts, took_s

    hosts, took_s = asyncio.run(gather())
    assert hosts == ["127.0.0.1"]
    assert took_s < 2.0


def test_consent_may_take_more_than_30_s_to_end_is_still_so():
    longest_s = aioice.ice.CONSENT_FAILURES * aioice.ice.CONSENT_INTERVAL * 1.2
    assert longest_s > 35


def test_datagrams_are_noted_and_bounded():
    async def work():
        connection = aioice.ice.Connection(ice_controlling=False, use_ipv6=False)
        assert connection._queue.maxsize == 0, "it has a bound of its own now"
        patches.limit_gathering(connection, ["127.0.0.1"], 0.2)
        await connection.gather_candidates()
        heard = []
        patches.watch_datagrams(connection, lambda: heard.append(1))
        for _ in range(patches.MAX_DATAGRAMS + 5):
            connection._protocols[0].datagram_received(b"\x80data", ("127.0.0.1", 1))
        size = connection._queue.qsize()
        await connection.close()
        return len(heard), size

    heard, size = asyncio.run(work())
    assert heard == patches.MAX_DATAGRAMS + 5
    assert size == patches.MAX_DATAGRAMS


def test_a_part_that_is_gone_is_told():
    with pytest.raises(AttributeError):
        patches._swap(Sink(), "_RTCRtpReceiver__", "jitter_buffer", None)
