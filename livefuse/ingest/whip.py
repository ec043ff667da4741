"""Be sent to by a browser or OBS over WebRTC (WHIP, RFC 9725): `whip:`.

HTTP hands the offer in and takes the answer out (control); here is what is sent. One publisher at a
time; when it goes away the next may come, and the output goes on meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS
from livefuse.errors import IngestError, JobError, JobNotFoundError
from livefuse.ingest.connection import Connection
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.whip_feed import WhipFeed
from livefuse.rtc.answers import raise_start_bitrate
from livefuse.rtc.guest import ANYBODY
from livefuse.rtc.sdp import check_publisher, read_offer
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import IngestConfig, WebRtcConfig
    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import IngestSink, InputState, MediaInfo
    from livefuse.ingest.stage import Stage, StageMaker
    from livefuse.packet import Packet
    from livefuse.rtc.guest import Guest
    from livefuse.rtc.jitter import Unit
    from livefuse.rtc.peer import Ending, Part, Transceiver
    from livefuse.rtc.sdp import Offer
    from livefuse.rtc.session import Session
    from livefuse.rtc.sync import Kind

URL: Final = "whip:"
GONE_S: Final = 3.0
"""A publisher that has been silent for this long gives way to the next: its page was reloaded.

One without pictures is still heard: browsers check the path at least every 2.5 s.
"""
_PAUSED_S: Final = 6.0
_ASK_EVERY_NS: Final = 300 * NS_PER_MS
_TROUBLE: Final = frozenset({"corrupt", "decode_error", "missing_pictures", "dropped_late_packets"})


class WhipIngest:
    """Waits for a publisher, takes what it sends, waits for the next, until stopped."""

    def __init__(
        self,
        config: IngestConfig,
        webrtc: WebRtcConfig,
        clock: Clock,
        *,
        make_stage: StageMaker = DecodeStage,
    ) -> None:
        self._config = config
        self._webrtc = webrtc
        self._clock = clock
        self._make_stage = make_stage
        self._stopping = threading.Event()
        self._condition = threading.Condition()
        self._feed: WhipFeed | None = None
        self._session: Session | None = None
        self._is_opening = False
        self._log = get_logger("ingest")

    def answer(self, offer_sdp: str, guest: Guest = ANYBODY) -> Session:
        """Let a publisher in; from any thread, it takes some 20 ms.

        Raises:
            ConfigError: the offer is no SDP (422).
            NotAcceptableError: there is no codec in common (406).
            JobError: somebody else is publishing, or the job is over (409).
        """
        from livefuse.rtc.loop import get_loop  # noqa: PLC0415 - aiortc comes with the first offer

        offer = read_offer(offer_sdp).leave_out(guest.allows)
        check_publisher(offer)
        before = self._reserve()
        try:
            if before is not None:
                before.close()
            session = get_loop().call(self._open_publisher(offer, guest))
        finally:
            with self._condition:
                self._is_opening = False
        if self._stopping.is_set():
            session.close_soon()
        return session

    def get_session(self, session_id: str) -> Session:
        """Return the session of that id.

        Raises:
            JobNotFoundError: there is none; perhaps it has ended.
        """
        session = self._session
        if session is None or session.id != session_id or session.state == "closed":
            raise JobNotFoundError("there is no such publisher, or it has left")
        return session

    def list_guests(self) -> set[str]:
        """Return the key of who publishes, none when nobody does."""
        session = self._session
        return set() if session is None or session.state == "closed" else {session.key_id}

    def hang_up(self, key_id: str) -> None:
        """Send who publishes with that key away; from any thread, returns at once."""
        session = self._session
        if session is not None and session.key_id == key_id:
            session.close_soon()

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` from one publisher after the other until stopped."""
        watched = _WatchedSink(sink, self._clock)
        stage = self._make_stage(watched, self._config, self._clock, self._stopping, is_live=True)
        sink.on_state("connecting")
        while not self._stopping.is_set():
            feed = self._wait_feed()
            if feed is None:
                break
            watched.feed = feed
            before = stage.frames
            error = self._play(feed, watched, stage)
            if self._is_paused(feed):
                feed.renew()
            else:
                self._leave(feed)
            if self._stopping.is_set():
                break
            if stage.frames > before:
                sink.count("reconnect")
            sink.on_state("lost" if stage.has_media else "connecting", error)
        sink.on_state("ended")

    def stop(self) -> None:
        """Ask `run` to return and the publisher to go; from any thread, returns at once."""
        self._stopping.set()
        with self._condition:
            session = self._session
            self._condition.notify_all()
        if session is not None:
            session.close_soon()

    def _reserve(self) -> Session | None:
        """Take the one place; return the session whose place it was, if that one is gone."""
        with self._condition:
            if self._stopping.is_set():
                raise JobError("the job is over: nothing can be sent to it any more")
            session = self._session
            is_there = session is not None and session.state != "closed"
            if self._is_opening or (session is not None and is_there and session.silent_s < GONE_S):
                raise JobError(
                    "somebody is publishing to this job already",
                    hint="stop that one first, or make another job",
                )
            self._is_opening = True
            return session if is_there else None

    def _wait_feed(self) -> WhipFeed | None:
        with self._condition:
            self._condition.wait_for(lambda: self._feed is not None or self._stopping.is_set())
            return self._feed

    def _is_paused(self, feed: WhipFeed) -> bool:
        """Say whether a publisher that sends no pictures is still connected and may go on."""
        with self._condition:
            session = self._session if self._feed is feed else None
        if feed.has_ended or self._stopping.is_set():
            return False
        return session is not None and session.state == "connected" and session.silent_s < _PAUSED_S

    def _leave(self, feed: WhipFeed) -> None:
        """Let go of a publisher that gives nothing any more; a new one may be there already."""
        with self._condition:
            session = None
            if self._feed is feed:
                session, self._session, self._feed = self._session, None, None
        if session is not None:
            session.close_soon()

    def _play(self, feed: WhipFeed, sink: IngestSink, stage: Stage) -> IngestError | None:
        try:
            link = Connection(URL, self._config, self._clock, self._stopping, sink, stage)
            link.run(feed, waits_for_ever=True)
        except IngestError as error:
            return error
        return None

    # On the peers' loop.

    async def _open_publisher(self, offer: Offer, guest: Guest) -> Session:
        from livefuse.rtc.loop import get_loop  # noqa: PLC0415 - as above
        from livefuse.rtc.peer import Peer  # noqa: PLC0415 - as above
        from livefuse.rtc.session import Session  # noqa: PLC0415 - as above

        audio = offer.find("audio")
        feed = WhipFeed(self._config, self._clock, has_sound=audio is not None and audio.is_sent)

        def end(ending: Ending) -> None:
            feed.on_end(ending)
            if ending.message:
                self._log.warning("a publisher is gone", cause=ending.message, hint=ending.hint)

        peer = Peer(self._webrtc, get_loop(), end)
        answer = await peer.answer(offer, self._make_parts(feed))
        answer = raise_start_bitrate(answer, self._webrtc.start_kbps, self._webrtc.max_kbps)
        session = Session(answer, peer, get_loop(), guest.key_id)
        with self._condition:
            self._session, self._feed = session, feed
            self._condition.notify_all()
        return session

    def _make_parts(self, feed: WhipFeed) -> dict[str, Part]:
        from livefuse.rtc import patches  # noqa: PLC0415 - as above
        from livefuse.rtc.loop import get_loop  # noqa: PLC0415 - as above
        from livefuse.rtc.peer import Part, list_codecs  # noqa: PLC0415 - as above

        def prepare(transceiver: Transceiver) -> None:
            kind: Kind = "video" if transceiver.kind == "video" else "audio"
            tap = patches.tap_receiver(
                transceiver.receiver,
                _UnitSink(feed, kind),
                feed.now_ms,
                self._webrtc.max_kbps * 1000,
            )
            patches.tap_reports(
                transceiver.receiver,
                lambda ntp, timestamp: feed.on_report(kind, ntp, timestamp),
            )
            if kind == "video":
                loop = get_loop()
                feed.ask_keyframe = lambda: loop.post(lambda: loop.spawn(tap.request_keyframe()))

        return {
            "video": Part(list_codecs("video"), None, prepare),
            "audio": Part(list_codecs("audio"), None, prepare),
        }


class _UnitSink:
    """Names the kind to a feed."""

    def __init__(self, feed: WhipFeed, kind: Kind) -> None:
        self._feed = feed
        self._kind = kind

    def on_unit(self, codec: str, unit: Unit) -> None:
        self._feed.on_unit(self._kind, codec, unit)

    def on_end(self) -> None:
        if self._kind == "video":
            self._feed.on_end()


class _WatchedSink:
    """Asks the publisher for a keyframe when the decoder is in trouble; passes everything on."""

    def __init__(self, sink: IngestSink, clock: Clock) -> None:
        self.feed: WhipFeed | None = None
        self._sink = sink
        self._clock = clock
        self._asked_ns = 0

    def on_media(self, media: MediaInfo) -> None:
        self._sink.on_media(media)

    def acquire_frame(self) -> Frame | None:
        return self._sink.acquire_frame()

    def on_frame(self, frame: Frame) -> None:
        self._sink.on_frame(frame)

    def on_audio(self, packet: Packet) -> None:
        self._sink.on_audio(packet)

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        self._sink.on_state(state, error)

    def count(self, event: str, amount: int = 1) -> None:
        self._sink.count(event, amount)
        now_ns = self._clock.now_ns()
        if event in _TROUBLE and self.feed and now_ns - self._asked_ns >= _ASK_EVERY_NS:
            self._asked_ns = now_ns
            self.feed.ask_keyframe()

    def begin_work(self) -> None:
        self._sink.begin_work()

    def end_work(self) -> None:
        self._sink.end_work()
