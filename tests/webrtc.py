"""Peers as browsers and OBS are, made of plain aiortc, on loopback only: they send and watch.

They have a loop of their own, as they would in another process. Pictures are bars with a counter
and a flash at each beep.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import av
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av.video.frame import PictureType

from livefuse.config import EncodeConfig
from livefuse.frame import TIME_BASE_HZ, Colour, create_frame
from livefuse.ingest.scene.bars import BarsPicture
from livefuse.ingest.scene.drawing import (
    FLASH_S,
    draw_counter,
    draw_flash,
    is_flash_lit,
    read_counter,
)
from livefuse.ingest.scene.voice import add_beeps, find_sync_moments
from livefuse.packet import Packet
from livefuse.publish.encode import VideoEncoder
from livefuse.rtc import patches
from livefuse.rtc.fragment import Fragment, build_fragment, read_fragment
from livefuse.rtc.loop import RtcLoop
from livefuse.rtc.restart import IceRestarts

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.rtc.session import Session

LOOPBACK = "127.0.0.1"
FPS = 30
_BASE = Fraction(1, TIME_BASE_HZ)


class PacketTrack(MediaStreamTrack):
    """Coded packets as they are put, from the loop."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.packets: asyncio.Queue[Any] = asyncio.Queue()  # noqa: TID251 - aiortc's own way
        self.last_pts: int | None = None

    async def recv(self) -> Any:
        packet = await self.packets.get()
        if packet is None:
            raise MediaStreamError
        self.last_pts = packet.pts
        return packet


class Client(ABC):
    """One peer that offers. `answer` takes the offer and returns the session it is answered by."""

    def __init__(self, answer: Callable[[str], Session]) -> None:
        self.loop = RtcLoop()
        self.session: Any = None
        self.offer_sdp = ""
        self._answer = answer
        self.connection: Any = None

    def connect(self) -> None:
        """Offer, take the answer, begin to connect."""
        self.offer_sdp = self.loop.call(self._offer())
        self.session = self._answer(self.offer_sdp)
        self.loop.call(self._take_answer(self.session.answer_sdp))

    def vanish(self) -> None:
        """Fall silent without a word, as when a cable is pulled."""
        self.loop.call(self._cut())

    def restart_ice(self) -> None:
        """Look for another path, as a browser does whose network has changed."""
        old = self.loop.call(self._get_agent())
        restarts, sent = self.loop.call(self._begin_restart())
        said = read_fragment(self.session.patch(sent, "*"))
        self.loop.call(self._go_on(restarts, said))
        wait_for(lambda: self.loop.call(self._get_agent()) is not old, 10, "another path")

    async def _get_agent(self) -> Any:
        return self._get_transport()._connection

    def _get_transport(self) -> Any:
        return self.connection.getTransceivers()[0].receiver.transport.transport

    async def _begin_restart(self) -> tuple[IceRestarts, str]:
        restarts = IceRestarts(self._get_transport(), self.loop, lambda: None)
        agent = await restarts.begin([LOOPBACK], 0.3)
        values = [candidate.to_sdp() for candidate in agent.local_candidates]
        return restarts, build_fragment(agent.local_username, agent.local_password, "0", values)

    async def _go_on(self, restarts: IceRestarts, said: Fragment) -> None:
        restarts.connect(said.username, said.password)
        for candidate in said.candidates:
            await restarts.add_candidate(candidate.value)

    def lose(self, share: float, seed: int = 1) -> None:
        """Lose this share of all datagrams of media from here on, in both directions."""
        self.loop.call(self._lose(random.Random(seed), share))

    async def _lose(self, choice: random.Random, share: float) -> None:
        agent = self._get_transport()._connection
        for protocol in agent._protocols:
            receive, send = protocol.datagram_received, protocol.send_data

            def receive_some(data: Any, addr: Any, receive: Any = receive) -> None:
                if choice.random() >= share or not is_media(data):
                    receive(data, addr)

            async def send_some(data: Any, addr: Any, send: Any = send) -> None:
                if choice.random() >= share or not is_media(data):
                    await send(data, addr)

            protocol.datagram_received, protocol.send_data = receive_some, send_some

    def close(self) -> None:
        """Say goodbye."""
        self.loop.call(self.connection.close())

    def is_connected(self) -> bool:
        """Whether media can flow."""
        return bool(self.connection.connectionState == "connected")

    async def _offer(self) -> str:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._add_media()
        for transceiver in self.connection.getTransceivers():
            transport = transceiver.receiver.transport.transport
            patches.limit_gathering(transport._connection, [LOOPBACK], 0.3)
        await self.connection.setLocalDescription(await self.connection.createOffer())
        return str(self.connection.localDescription.sdp)

    async def _take_answer(self, answer: str) -> None:
        await self.connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def _cut(self) -> None:
        for transceiver in self.connection.getTransceivers():
            ice = transceiver.receiver.transport.transport._connection
            if ice._query_consent_task is not None:
                ice._query_consent_task.cancel()
            for protocol in ice._protocols:
                protocol.transport.abort()

    @abstractmethod
    def _add_media(self) -> None:
        """Add what is sent and received to the connection, before it offers."""


class Publisher(Client):
    """Sends bars and beeps in real time, coded here; for `with`."""

    def __init__(
        self, answer: Callable[[str], Session], *, size=(640, 360), has_sound=True, codec="H264"
    ) -> None:
        super().__init__(answer)
        self.size = size
        self.has_sound = has_sound
        self.codec = codec
        self.keyframe_wishes = 0
        self.is_paused = False
        self.sent = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="test-publisher", daemon=True)

    def __enter__(self) -> Publisher:
        self.connect()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_feeding()
        self.close()

    def stop_feeding(self) -> None:
        """Send nothing more."""
        self._stop.set()
        self._thread.join(5)

    def _add_media(self) -> None:
        self.video, self.audio = PacketTrack("video"), PacketTrack("audio")
        transceivers = [self.connection.addTransceiver(self.video, "sendonly")]
        if self.has_sound:
            transceivers.append(self.connection.addTransceiver(self.audio, "sendonly"))
        for transceiver, track in zip(transceivers, (self.video, self.audio), strict=False):
            patches.stamp_reports(transceiver.sender, track, self._to_ntp)
        prefer(transceivers[0], self.codec)
        patches.hook_keyframes(transceivers[0].sender, self._note_wish)

    def _to_ntp(self, pts: int) -> int:
        """Report as browsers do: both kinds by one clock."""
        return (10**9 << 32) + (pts << 32) // TIME_BASE_HZ

    def _note_wish(self) -> None:
        self.keyframe_wishes += 1
        self._encoder.force_keyframe()

    def _feed(self) -> None:
        width, height = self.size
        self._encoder = self._create_encoder(width, height)
        bars, frame, sound = BarsPicture(width, height), create_frame(width, height), Sound()
        self._encoder.force_keyframe()
        started: float | None = None
        number = 0
        while not self._stop.is_set():
            if self.is_paused or not self.is_connected():
                time.sleep(0.01)
                started = None
                continue
            started = started or time.monotonic() - number / FPS
            if self._stop.wait(max(started + number / FPS - time.monotonic(), 0)):
                return
            if (width, height) != self.size:
                width, height = self.size
                self._encoder = self._create_encoder(width, height)
                bars, frame = BarsPicture(width, height), create_frame(width, height)
            self._draw(bars, frame, number)
            frame.pts = number * TIME_BASE_HZ // FPS
            for coded in self._encoder.encode(frame):
                self._put(self.video, coded.data, coded.pts)
            self.sent += 1
            number += 1
            if self.has_sound:
                for data, pts in sound.encode_until(number / FPS):
                    self._put(self.audio, data, pts)

    def _create_encoder(self, width: int, height: int) -> Any:
        if self.codec == "VP8":
            return Vp8Encoder(width, height)
        config = EncodeConfig(bitrate_kbps=1500, keyframe_interval_s=10.0, preset="ultrafast")
        return VideoEncoder(config, width, height, FPS, Colour())

    def _draw(self, bars: BarsPicture, frame: Any, number: int) -> None:
        time_s = number / FPS
        bars.draw(frame, time_s, number)
        draw_counter(frame, number, "large")
        moments = find_sync_moments(Fraction(FPS), time_s - FLASH_S, time_s)
        draw_flash(frame, is_lit=any(0 <= time_s - at < FLASH_S for at in moments))

    def _put(self, track: PacketTrack, data: bytes, pts: int) -> None:
        packet = av.Packet(data)
        packet.pts = packet.dts = pts
        packet.time_base = _BASE
        self.loop.post(track.packets.put_nowait, packet)


class Vp8Encoder:
    """What a browser without H.264 sends."""

    def __init__(self, width: int, height: int) -> None:
        self._encoder: Any = av.CodecContext.create("libvpx", "w")
        self._encoder.width, self._encoder.height = width, height
        self._encoder.pix_fmt, self._encoder.time_base = "yuv420p", _BASE
        self._encoder.bit_rate = 1_500_000
        self._encoder.options = {"deadline": "realtime", "cpu-used": "12", "lag-in-frames": "0"}
        self._is_forced = False

    def force_keyframe(self) -> None:
        """Make the next picture a keyframe."""
        self._is_forced = True

    def encode(self, frame: Any) -> list[Packet]:
        """Return the packet of `frame`."""
        picture = av.VideoFrame.from_ndarray(frame.buffer, format="yuv420p")
        picture.pts, picture.time_base = frame.pts, _BASE
        picture.pict_type = PictureType.I if self._is_forced else PictureType.NONE
        self._is_forced = False
        return [
            Packet("video", bytes(packet), frame.pts, frame.pts)
            for packet in self._encoder.encode(picture)
        ]


class Sound:
    """Silence with beeps, as Opus packets of 20 ms."""

    def __init__(self) -> None:
        self._encoder: Any = av.CodecContext.create("libopus", "w")
        self._encoder.sample_rate, self._encoder.layout = 48_000, "stereo"
        self._encoder.format = "s16"
        self._encoder.time_base = Fraction(1, 48_000)
        self._encoder.options = {"application": "lowdelay"}
        self._encoder.open()
        self._made = 0

    def encode_until(self, time_s: float) -> list[tuple[bytes, int]]:
        """Return packets and their PTS in 1/90000 s up to `time_s`."""
        out = []
        while self._made + 960 <= time_s * 48_000:
            samples = np.zeros(960, np.float32)
            add_beeps(samples, self._made, Fraction(FPS))
            stereo = np.repeat((samples * 20_000).astype(np.int16), 2)[None, :]
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(stereo), "s16", "stereo")
            frame.sample_rate, frame.pts = 48_000, self._made
            out += [(bytes(p), self._made * 15 // 8) for p in self._encoder.encode(frame)]
            self._made += 960
        return out


class Watcher(Client):
    """Watches, as aiortc comes; keeps the counters, times and sizes of what it sees; for `with`."""

    def __init__(self, answer: Callable[[str], Session], *, has_sound: bool = True) -> None:
        super().__init__(answer)
        self.has_sound = has_sound
        self.counters: list[int | None] = []
        self.sizes: list[tuple[int, int]] = []
        self.arrivals: list[float] = []
        self.flashes: list[tuple[float, bool]] = []
        self.samples: list[tuple[float, np.ndarray]] = []
        self.pts: list[float] = []
        self.reports: dict[str, tuple[float, float]] = {}

    def __enter__(self) -> Watcher:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def to_sender_s(self, kind: str, pts_s: float) -> float:
        """Return the sender's time of what aiortc stamped `pts_s`, by the last report of `kind`."""
        ntp_s, report_s = self.reports[kind]
        return ntp_s + pts_s - report_s

    def ask_keyframe(self) -> None:
        """Send a PLI."""
        receiver = self.connection.getTransceivers()[0].receiver
        ssrc = next(iter(receiver._RTCRtpReceiver__remote_streams))
        self.loop.call(receiver._send_rtcp_pli(ssrc))

    def _add_media(self) -> None:
        transceivers = [self.connection.addTransceiver("video", "recvonly")]
        prefer(transceivers[0], "H264")
        if self.has_sound:
            transceivers.append(self.connection.addTransceiver("audio", "recvonly"))
        for transceiver in transceivers:
            patches.tap_reports(transceiver.receiver, partial(self._note_report, transceiver))

        self.connection.on("track", lambda track: self.loop.spawn(self._watch(track)))

    def _note_report(self, transceiver: Any, ntp: int, timestamp: int) -> None:
        """Keep what a report says, on the line on which aiortc stamps."""
        mapper = transceiver.receiver._RTCRtpReceiver__timestamp_mapper
        if ntp and mapper._origin is not None:
            rate_hz = 90_000 if transceiver.kind == "video" else 48_000
            since = (timestamp - mapper._origin) % 2**32
            self.reports[transceiver.kind] = (ntp / 2**32 % 1e6, since / rate_hz)

    async def _watch(self, track: Any) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            if track.kind == "video":
                plane = frame.planes[0]
                y = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:, : frame.width]
                self.counters.append(read_counter(y))
                self.sizes.append((frame.width, frame.height))
                self.arrivals.append(time.monotonic())
                self.pts.append(float(frame.pts * frame.time_base))
                self.flashes.append((time.monotonic(), is_flash_lit(y)))
            else:
                self.samples.append((float(frame.pts * frame.time_base), frame.to_ndarray()))


def is_media(data: bytes) -> bool:
    """Tell SRTP and SRTCP from the rest (RFC 7983)."""
    return 127 < data[0] < 192


def prefer(transceiver: Any, codec: str) -> None:
    """Offer only `codec` (H264, VP8) and its retransmission."""
    patches.add_h264_profiles()
    known = type(transceiver.sender).getCapabilities("video").codecs
    names = {f"video/{codec}", "video/rtx"}
    transceiver.setCodecPreferences([one for one in known if one.mimeType in names])


def wait_for(condition: Callable[[], object], timeout_s: float = 10.0, what: str = "") -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)
