"""What aiortc 1.16 and aioice 0.13 do wrong for us, put right on single objects, never globally.

Each function mends one fault; tests/unit/rtc/test_patches.py shows each in the library as it comes,
and so tells when a work-around is no longer needed. All run on the peers' loop.

    add_h264_profiles      only baseline is known, browsers offer more (the one table)
    tap_receiver           a picture is handed out when the next one begins (+33 ms at 30 fps),
                           sound after 4 packets; a lost packet is asked for once; a hole is waited
                           for until 512 packets are there; queues and decoder have no bound; the
                           sender is slowed down whenever this process pauses
    tap_reports            nobody is told which instant a time stamp belongs to
    stamp_reports          reports of a sender name the time of sending, so that a picture that was
                           worked on for longer seems to be later than its sound
    hook_keyframes         a wish for a keyframe does not reach whoever encodes
    set_packer             coded packets are cut again for each viewer
    ask_for_no_delay       viewers cannot be told how long to wait with a picture, so they wait
    limit_gathering        a name server or STUN server that is silent holds the answer for 5 s; the
                           loopback address is left out; no choice of addresses
    watch_datagrams        nobody sees a peer fall silent before 30 to 39 s; received datagrams
                           queue without a bound
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from aiortc import codecs
from aiortc.rtcrtpparameters import (
    RTCRtcpFeedback,
    RTCRtpCodecParameters,
    RTCRtpHeaderExtensionParameters,
)
from aiortc.rtp import RtcpSrPacket

from livefuse.rtc.bandwidth import LossBandwidth
from livefuse.rtc.jitter import LossTracker
from livefuse.rtc.standins import Buffer, Estimator, IdleQueue, Nacks, Packer, PlayoutMap, Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioice.ice import Connection
    from aiortc import RTCRtpReceiver, RTCRtpSender, RTCRtpTransceiver

    from livefuse.rtc.standins import UnitSink

MAX_DATAGRAMS: Final = 2048
PLAYOUT_DELAY: Final = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
_MAX_SHORT_NUMBER: Final = 14  # others need headers that are not negotiated
_PROFILES: Final = ("4d001f", "64001f", "640c1f")
_FIRST_FREE_PAYLOAD_TYPE: Final = 110
_LOOPBACK: Final = "127.0.0.1"
_RECEIVER: Final = "_RTCRtpReceiver__"
_SENDER: Final = "_RTCRtpSender__"


class LastPts(Protocol):
    """A track that knows the instant, in 1/90000 s, of what it gave out last; None before."""

    last_pts: int | None


def add_h264_profiles() -> None:
    """Let main, high and constrained high be negotiated too. Twice is once."""
    table = codecs.CODECS["video"]
    known = {codec.parameters.get("profile-level-id") for codec in table}
    number = _FIRST_FREE_PAYLOAD_TYPE
    for profile in _PROFILES:
        if profile in known:
            continue
        feedback = [RTCRtcpFeedback("nack"), RTCRtcpFeedback("nack", "pli")]
        feedback.append(RTCRtcpFeedback("goog-remb"))
        parameters: dict[str, Any] = {
            "level-asymmetry-allowed": "1",
            "packetization-mode": "1",
            "profile-level-id": profile,
        }
        table += [
            RTCRtpCodecParameters(
                mimeType="video/H264",
                clockRate=90_000,
                payloadType=number,
                rtcpFeedback=feedback,
                parameters=parameters,
            ),
            RTCRtpCodecParameters(
                mimeType="video/rtx",
                clockRate=90_000,
                payloadType=number + 1,
                parameters={"apt": number},
            ),
        ]
        number += 2


def tap_receiver(
    receiver: RTCRtpReceiver, sink: UnitSink, now_ms: Callable[[], float], max_bps: int
) -> Tap:
    """Have `receiver` give its coded units to `sink`, whole and at once, and decode nothing.

    Pictures may be sent at `max_bps` at most.
    """
    is_video = _get(receiver, _RECEIVER, "kind") == "video"
    known = _get(receiver, _RECEIVER, "codecs")
    tap = Tap(receiver, sink)
    _swap(receiver, _RECEIVER, "jitter_buffer", Buffer(known, sink, now_ms, tap, is_video=is_video))
    _swap(receiver, _RECEIVER, "decoder_queue", IdleQueue(sink.on_end))
    if is_video:
        tracker = LossTracker()
        _swap(receiver, _RECEIVER, "nack_generator", Nacks(now_ms, tracker))
        estimator = Estimator(LossBandwidth(max_bps), tracker)
        _swap(receiver, _RECEIVER, "remote_bitrate_estimator", estimator)
    return tap


def tap_reports(receiver: RTCRtpReceiver, on_report: Callable[[int, int], None]) -> None:
    """Call `on_report(ntp_timestamp, rtp_timestamp)` for each report of the sender."""
    handle = receiver._handle_rtcp_packet

    async def note(packet: Any) -> None:
        if isinstance(packet, RtcpSrPacket):
            on_report(packet.sender_info.ntp_timestamp, packet.sender_info.rtp_timestamp)
        await handle(packet)

    _override(receiver, "_handle_rtcp_packet", note)


def stamp_reports(sender: RTCRtpSender, track: LastPts, to_ntp: Callable[[int], int]) -> None:
    """Make the reports of `sender` name the instant of its picture or sound: `to_ntp(pts)`."""
    send = sender._send_rtcp

    async def stamp(packets: list[Any]) -> None:
        for packet in packets:
            if isinstance(packet, RtcpSrPacket) and track.last_pts is not None:
                packet.sender_info.ntp_timestamp = to_ntp(track.last_pts)
        await send(packets)

    _override(sender, "_send_rtcp", stamp)


def hook_keyframes(sender: RTCRtpSender, on_wish: Callable[[], None]) -> None:
    """Call `on_wish` when the viewer asks for a keyframe (PLI, FIR)."""
    _override(sender, "_send_keyframe", on_wish)


def set_packer(sender: RTCRtpSender) -> None:
    """Let the track of `sender` give `Payloads`."""
    _swap(sender, _SENDER, "encoder", Packer())


def ask_for_no_delay(transceiver: RTCRtpTransceiver, extensions: Mapping[str, int]) -> None:
    """Say with each packet that its picture is to be shown at once, where a viewer can be told.

    `extensions` are the numbers that the viewer has offered. Without it browsers hold pictures back
    to show them evenly, by what they have learned of the network.
    """
    number = extensions.get(PLAYOUT_DELAY, 0)
    if not 0 < number <= _MAX_SHORT_NUMBER:
        return
    listed = transceiver._headerExtensions
    listed.append(RTCRtpHeaderExtensionParameters(id=number, uri=PLAYOUT_DELAY))
    _swap(transceiver.sender, _SENDER, "rtp_header_extensions_map", PlayoutMap(number))


def limit_gathering(connection: Connection, addresses: Sequence[str], timeout_s: float) -> None:
    """Use `addresses` and wait for STUN and TURN only so long.

    Empty: all addresses of the machine, the loopback one only when there is no other.
    """
    gather = connection.get_component_candidates

    async def gather_within(component: int, addresses: list[str], timeout: int = 0) -> Any:  # noqa: ASYNC109 - the method's own form
        used: Any = min(timeout or limit, limit)  # asyncio takes parts of a second
        return await gather(component, chosen or addresses or [_LOOPBACK], used)

    chosen, limit = list(addresses), timeout_s
    _override(connection, "get_component_candidates", gather_within)


def watch_datagrams(
    connection: Connection, note: Callable[[], None], *, waiting: Connection | None = None
) -> None:
    """Call `note` for each datagram of the other end; drop them while too many wait.

    They wait in `connection`, or where another takes them: in `waiting`.
    """
    for protocol in connection._protocols:
        _watch(protocol, waiting or connection, note)


def _watch(protocol: Any, waiting: Connection, note: Callable[[], None]) -> None:
    receive = protocol.datagram_received

    def receive_bounded(data: bytes, addr: tuple[Any, ...]) -> None:
        note()
        if waiting._queue.qsize() < MAX_DATAGRAMS:
            receive(data, addr)

    protocol.datagram_received = receive_bounded


def _get(owner: object, prefix: str, name: str) -> Any:
    return getattr(owner, prefix + name)


def _swap(owner: object, prefix: str, name: str, value: object) -> None:
    """Replace a private part; a version of aiortc that has none of that name is told of."""
    getattr(owner, prefix + name)
    setattr(owner, prefix + name, value)


def _override(owner: object, name: str, value: object) -> None:
    getattr(owner, name)
    setattr(owner, name, value)
