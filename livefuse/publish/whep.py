"""The stream for viewers by WebRTC (WHEP): the packets of the one encode to each of them.

It costs nothing while nobody watches: not even aiortc is loaded. Each packet is cut into RTP
payloads once for all; a browser's own Opus goes on untouched, other sound becomes Opus once for
all. A viewer that asks for a picture (PLI) or
has just come gets a keyframe by way of the one encoder; one that is too slow skips to the next.

The stream is H.264 as the encoder makes it (high profile, no B-frames, parameter sets before each
keyframe). A viewer that offers high gets it as such, all others as the baseline that they offer:
what browsers decode does not depend on the name.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import av

from livefuse.clock import NS_PER_S
from livefuse.errors import JobError, JobNotFoundError
from livefuse.frame import TIME_BASE_HZ
from livefuse.publish.base import OutputStatus
from livefuse.publish.h264 import SPS, get_nal_type, split_nals
from livefuse.publish.opus import RATE_HZ, OpusTranscoder
from livefuse.publish.sei import is_record
from livefuse.publish.whep_viewer import Viewer, check_room
from livefuse.rtc.guest import ANYBODY
from livefuse.rtc.payload import Payloads, packetize_h264
from livefuse.rtc.sdp import check_viewer, read_offer
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import WebRtcConfig
    from livefuse.packet import Packet, StreamsInfo
    from livefuse.rtc.guest import Guest
    from livefuse.rtc.peer import Ending, Part, Transceiver
    from livefuse.rtc.sdp import Offer
    from livefuse.rtc.session import Session

_NTP_EPOCH_S: Final = 2_208_988_800
"""From 1900, where NTP counts from, to 1970."""
_SOURCE_PAUSE: Final = TIME_BASE_HZ // 5
"""A source's own sound that stays away for longer is filled by what all outputs get: silence."""


class WhepOutput:
    """An `Output` that browsers can watch at any time. Safe from any thread."""

    def __init__(
        self,
        config: WebRtcConfig,
        clock: Clock,
        request_keyframe: Callable[[], None],
        *,
        has_records: bool = True,
    ) -> None:
        """`has_records`: viewers get the signed record of each keyframe too (sei.py)."""
        self._config = config
        self._clock = clock
        self._request_keyframe = request_keyframe
        self._has_records = has_records
        self._lock = threading.Lock()
        self._viewers: tuple[Viewer, ...] = ()
        self._opening: list[str] = []
        """The keys of those who are being let in."""
        self._is_closed = False
        self._streams: StreamsInfo | None = None
        self._opus: OpusTranscoder | None = None
        self._packets = self._dropped_before = 0
        self._error = ""
        self._sound_pts = self._relayed_pts = -_SOURCE_PAUSE
        # An instant of the job's line and of the clock: what reports to viewers count by.
        self._anchor: tuple[int, float] | None = None
        self._log = get_logger("publish")

    def answer(self, offer_sdp: str, guest: Guest = ANYBODY) -> Session:
        """Let a viewer in; from any thread, it takes some 20 ms.

        Raises:
            ConfigError: the offer is no SDP (422).
            NotAcceptableError: there is no codec in common (406).
            JobCapacityError: `webrtc.max_viewers` are watching, or as many as the guest's key may
                have (503).
            JobError: the job is over (409).
        """
        from livefuse.rtc.loop import get_loop  # noqa: PLC0415 - only where somebody watches

        offer = read_offer(offer_sdp).leave_out(guest.allows)
        check_viewer(offer)
        self._reserve(guest)
        try:
            return get_loop().call(self._open_viewer(offer, guest))
        finally:
            with self._lock:
                self._opening.remove(guest.key_id)

    def get_session(self, session_id: str) -> Session:
        """Return the session of that id.

        Raises:
            JobNotFoundError: there is none; perhaps it has ended.
        """
        for viewer in self._viewers:
            if viewer.session is not None and viewer.session.id == session_id:
                return viewer.session
        raise JobNotFoundError("there is no such viewer, or it has left", hint="send a new offer")

    def list_guests(self) -> set[str]:
        """Return the keys of those who watch."""
        return {viewer.key_id for viewer in self._viewers}

    def hang_up(self, key_id: str) -> None:
        """Send away who watches with that key; from any thread, returns at once."""
        for viewer in self._viewers:
            if viewer.key_id == key_id:
                viewer.hang_up()

    def open(self, streams: StreamsInfo) -> None:
        """Take the description."""
        self._streams = streams

    def send(self, packet: Packet) -> None:
        """Hand `packet` to every viewer; returns at once."""
        viewers = self._viewers
        if not viewers:
            return
        if self._anchor is None:
            self._anchor = (packet.pts, self._clock.epoch_s())
        if packet.kind == "audio":
            if packet.pts > self._relayed_pts + _SOURCE_PAUSE:
                for sound in self._transcode(packet):
                    self._send_sound(viewers, sound)
            return
        nals = split_nals(packet.data)
        if packet.is_keyframe and not self._has_records:
            nals = [nal for nal in nals if not is_record(nal)]
        payloads = packetize_h264(nals)
        unit = Payloads(payloads, packet.pts, packet.pts)
        self._packets += 1
        self._pass_on(viewers, "video", unit, is_keyframe=packet.is_keyframe)

    def relay(self, packet: Packet) -> None:
        """Hand the source's own Opus to every viewer: it takes the place of what is made of AAC."""
        viewers = self._viewers
        if viewers and self._anchor is not None:
            self._relayed_pts = packet.pts
            self._send_sound(viewers, packet)

    def close(self, timeout_s: float) -> None:  # noqa: ARG002 - saying goodbye takes no time
        """End the stream for all viewers."""
        with self._lock:
            self._is_closed = True
        for viewer in self._viewers:
            viewer.hang_up()

    def status(self) -> OutputStatus:
        """Return a snapshot; `error` tells why the last viewer that failed did."""
        viewers = self._viewers
        return OutputStatus(
            kind="webrtc",
            url="whep",
            state="closed" if self._is_closed else "live",
            connected=not self._is_closed,
            packets=self._packets,
            dropped=self._dropped_before + sum(viewer.dropped for viewer in viewers),
            viewers=len(viewers),
            error=self._error,
        )

    def _reserve(self, guest: Guest) -> None:
        with self._lock:
            if self._is_closed:
                raise JobError("the job is over: nobody can watch it any more")
            keys = [*self._opening, *(viewer.key_id for viewer in self._viewers)]
            check_room(keys, guest, self._config.max_viewers)
            self._opening.append(guest.key_id)

    def _send_sound(self, viewers: tuple[Viewer, ...], packet: Packet) -> None:
        """Send sound that goes on behind what was sent: AAC and the source's own take turns."""
        if packet.pts <= self._sound_pts:
            return
        self._sound_pts = packet.pts
        unit = Payloads((packet.data,), packet.pts * RATE_HZ // TIME_BASE_HZ, packet.pts)
        self._pass_on(viewers, "audio", unit, is_keyframe=True)

    def _transcode(self, packet: Packet) -> list[Packet]:
        """Return Opus for `packet`; a packet that cannot be decoded is left out."""
        audio = self._streams.audio if self._streams is not None else None
        if audio is None:
            return []
        opus = self._opus  # the peers' loop forgets it with the last viewer
        try:
            if opus is None:
                opus = self._opus = OpusTranscoder(audio, self._config.opus_kbps)
            return opus.process(packet)
        except (av.FFmpegError, ValueError):
            self._opus = None
            return []

    def _pass_on(
        self, viewers: tuple[Viewer, ...], kind: str, unit: Payloads, *, is_keyframe: bool
    ) -> None:
        from livefuse.rtc.loop import get_loop  # noqa: PLC0415 - loaded by the first viewer

        def put() -> None:
            for viewer in viewers:
                track = viewer.tracks.get(kind)
                if track is not None:
                    track.put(unit, is_keyframe=is_keyframe)

        get_loop().post(put)

    # On the peers' loop.

    async def _open_viewer(self, offer: Offer, guest: Guest) -> Session:
        from livefuse.rtc.loop import get_loop  # noqa: PLC0415 - as above
        from livefuse.rtc.peer import Peer  # noqa: PLC0415 - as above
        from livefuse.rtc.session import Session  # noqa: PLC0415 - as above

        viewer = Viewer(guest.key_id)
        peer = Peer(self._config, get_loop(), lambda ending: self._drop_viewer(viewer, ending))
        answer = await peer.answer(offer, self._make_parts(viewer, offer))
        viewer.session = Session(answer, peer, get_loop(), guest.key_id)
        with self._lock:
            self._viewers += (viewer,)
        return viewer.session

    def _make_parts(self, viewer: Viewer, offer: Offer) -> dict[str, Part]:
        from livefuse.rtc import patches  # noqa: PLC0415 - as above
        from livefuse.rtc.peer import Part, list_codecs  # noqa: PLC0415 - as above
        from livefuse.rtc.sending import OutgoingTrack  # noqa: PLC0415 - as above

        media = offer.find("video")
        video = OutgoingTrack("video", self._request_keyframe)
        audio = OutgoingTrack("audio", _do_nothing)
        viewer.tracks = {"video": video, "audio": audio}

        def prepare(transceiver: Transceiver) -> None:
            sender = transceiver.sender
            track = viewer.tracks[transceiver.kind]
            patches.set_packer(sender)
            patches.stamp_reports(sender, track, self._to_ntp)
            if track is video:
                patches.ask_for_no_delay(transceiver, media.extensions if media else {})
                patches.hook_keyframes(sender, self._request_keyframe)

        profile = self._find_profile()
        return {
            "video": Part(list_codecs("video", profile=profile, h264_only=True), video, prepare),
            "audio": Part(list_codecs("audio"), audio, prepare),
        }

    def _drop_viewer(self, viewer: Viewer, ending: Ending) -> None:
        if ending.message:  # known before the viewer is seen to be gone
            self._error = f"{ending.message}: {ending.hint}"
            self._log.warning("a viewer is gone", cause=ending.message, hint=ending.hint)
        with self._lock:
            if viewer in self._viewers:
                self._dropped_before += viewer.dropped
            self._viewers = tuple(one for one in self._viewers if one is not viewer)
            if not self._viewers:
                self._opus = None

    def _find_profile(self) -> str:
        """Return the profile-level-id of the stream, "" before it is known."""
        video = self._streams.video if self._streams is not None else None
        nals = split_nals(video.extradata) if video is not None else []
        return next((nal[1:4].hex() for nal in nals if get_nal_type(nal) == SPS), "")

    def _to_ntp(self, pts: int) -> int:
        """Return the NTP time (32.32 bits) of an instant of the job's line."""
        first_pts, first_s = self._anchor or (pts, self._clock.epoch_s())
        since_ns = (pts - first_pts) * NS_PER_S // TIME_BASE_HZ
        at_ns = round((first_s + _NTP_EPOCH_S) * NS_PER_S) + since_ns
        return (at_ns << 32) // NS_PER_S


def _do_nothing() -> None:
    """Sound can begin anywhere."""
