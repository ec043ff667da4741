"""One WebRTC connection: offer -> answer at once, candidates as they come, and its end.

Everything here runs on the peers' loop. The other end's candidates are added after the answer is
made. Names among them, in .local or elsewhere, are left out and never looked up: whoever hides its
address behind one is found by its own checks (peer-reflexive candidates, RFC 8445 section 7.3.1.3).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from aiortc import (
    RTCConfiguration,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpSender,
    RTCRtpTransceiver,
    RTCSessionDescription,
)
from aiortc.sdp import candidate_from_sdp

from livefuse.errors import ConfigError, LivefuseError, NotAcceptableError, RefusedError
from livefuse.rtc import patches, sdp
from livefuse.rtc.answers import announce_address
from livefuse.rtc.fragment import Fragment, build_fragment
from livefuse.rtc.restart import IceRestarts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from aiortc import RTCIceTransport, RTCRtpCodecCapability

    from livefuse.config import WebRtcConfig
    from livefuse.rtc.loop import RtcLoop
    from livefuse.rtc.sending import OutgoingTrack

Transceiver = RTCRtpTransceiver
"""One section with its sender and receiver; who is told of it leaves aiortc to us."""
PeerState = Literal["connecting", "connected", "closed"]
Reason = Literal["closed", "left", "no_path", "silent", "failed"]
CONNECT_S: Final = 20.0
SILENCE_S: Final = 15.0
"""A live peer is heard every few seconds, if only by its checks of consent (RFC 7675)."""
GATHER_S: Final = 0.3
"""STUN and TURN servers that answer later are done without: an answer takes half a second."""
_LOOK_EVERY_S: Final = 0.5
_CLOSE_S: Final = 5.0
for _name in ("aiortc", "aioice"):
    # What they warn of comes as a trace, and with addresses; a peer's end is told by us.
    logging.getLogger(_name).setLevel(logging.CRITICAL)
_BASELINE: Final = ("42e01f", "42001f")


class Ending(NamedTuple):
    """Why a peer is gone, as a sentence and what to do; both empty when somebody closed it."""

    reason: Reason
    message: str = ""
    hint: str = ""


class Part(NamedTuple):
    """One section of a connection as we want it.

    `codecs` in order of preference; `track` is what is sent, None to receive; `prepare` is called
    with the transceiver before anything flows.
    """

    codecs: list[RTCRtpCodecCapability]
    track: OutgoingTrack | None
    prepare: Callable[[Transceiver], None]


class Peer:
    """One connection. `on_end` is called once, whoever ends it."""

    def __init__(
        self, config: WebRtcConfig, loop: RtcLoop, on_end: Callable[[Ending], None]
    ) -> None:
        patches.add_h264_profiles()
        self.state: PeerState = "connecting"
        self._config = config
        self._loop = loop
        self._on_end = on_end
        self._now = asyncio.get_running_loop().time
        self._born = self._heard = self._now()
        self._connection = RTCPeerConnection(_configure(config))
        self._connection.on("connectionstatechange", self._note_state)
        self._is_ended = False
        self._restarts: IceRestarts | None = None
        self._remote_username = ""

    @property
    def silent_s(self) -> float:
        """For how long nothing has been heard of the other end."""
        return self._now() - self._heard

    async def answer(self, offer: sdp.Offer, parts: dict[str, Part]) -> str:
        """Return the answer to `offer`; connecting goes on by itself.

        Raises:
            ConfigError: the offer cannot be read after all.
            NotAcceptableError: there is no common codec, or no address to be reached at.
        """
        try:
            text = await self._negotiate(offer, parts)
        except BaseException as error:
            await self.close(Ending("closed"))
            if isinstance(error, Exception) and not isinstance(error, LivefuseError):
                raise ConfigError(
                    f"the offer cannot be used ({str(error) or type(error).__name__})",
                    hint="send what a browser's createOffer returns",
                ) from None
            raise
        self._loop.spawn(self._add_candidates(offer.candidates))
        self._loop.spawn(self._watch())
        return self._announce(text)

    async def patch(self, fragment: Fragment) -> str:
        """Take candidates that were found later, or new credentials: an ICE restart.

        Return the fragment that answers a restart, nothing for candidates.

        Raises:
            RefusedError: the connection has more than one path, or none yet.
        """
        restarts = self._restarts
        if not fragment.username or fragment.username == self._remote_username:
            await self._add_candidates(fragment.candidates)
            return ""
        if restarts is None or self.state != "connected":
            raise RefusedError(
                "ICE can be restarted only where a bundled connection stands",
                hint="send a new offer instead",
            )
        agent = await restarts.begin(self._config.addresses, GATHER_S)
        restarts.connect(fragment.username, fragment.password)
        self._remote_username = fragment.username
        await self._add_candidates(fragment.candidates)
        candidates = [candidate.to_sdp() for candidate in agent.local_candidates]
        mid = str(self._connection.getTransceivers()[0].mid)
        answer = build_fragment(agent.local_username, agent.local_password, mid, candidates)
        return self._announce(answer)

    async def close(self, ending: Ending) -> None:
        """End; twice is once."""
        if self._is_ended:
            return
        self._is_ended = True
        try:
            self._on_end(ending)
        finally:
            self.state = "closed"  # whoever sees that may ask why
        # aiortc cannot close what an odd offer left half made: a section without a transport.
        with contextlib.suppress(asyncio.TimeoutError, AttributeError):
            await asyncio.wait_for(self._connection.close(), _CLOSE_S)

    def _announce(self, text: str) -> str:
        address = self._config.announce_address
        return announce_address(text, address) if address else text

    async def _negotiate(self, offer: sdp.Offer, parts: dict[str, Part]) -> str:
        connection = self._connection
        made: list[tuple[Part, Transceiver]] = []
        for media in offer.media:
            part = parts.pop(media.kind, None)
            if part is None:
                continue
            direction = "recvonly" if part.track is None else "sendonly"
            transceiver = connection.addTransceiver(part.track or media.kind, direction)
            # Preferences count only for what is there before the offer is.
            transceiver.setCodecPreferences(part.codecs)
            made.append((part, transceiver))
        await connection.setRemoteDescription(RTCSessionDescription(offer.text, "offer"))
        for part, transceiver in made:
            part.prepare(transceiver)
        transports = self._list_transports()
        for transport in transports:
            patches.limit_gathering(transport._connection, self._config.addresses, GATHER_S)  # noqa: SLF001 - aiortc's own name for it
        await connection.setLocalDescription(await connection.createAnswer())
        for transport in transports:
            patches.watch_datagrams(transport._connection, self._note_datagram)  # noqa: SLF001 - as above
        if not any(transport.iceGatherer.getLocalCandidates() for transport in transports):
            raise NotAcceptableError(
                "this machine has no address that the other end could reach",
                hint="correct webrtc.addresses",
            )
        if len(transports) == 1:
            self._restarts = IceRestarts(transports[0], self._loop, self._note_datagram)
        self._remote_username = sdp.read_username(offer.text)
        return str(connection.localDescription.sdp)

    def _list_transports(self) -> list[RTCIceTransport]:
        used = [t.receiver.transport.transport for t in self._connection.getTransceivers()]
        if self._connection.sctp is not None:
            used.append(self._connection.sctp.transport.transport)
        return list(dict.fromkeys(used))

    async def _add_candidates(self, candidates: Iterable[sdp.Candidate]) -> None:
        """Add what can be used; the end of them is never told, so that late checks still count."""
        transports = {t.mid: t.receiver.transport.transport for t in self._list_transceivers()}
        first = next(iter(transports.values()), None)
        for candidate in candidates:
            transport = transports.get(candidate.mid, first)
            if transport is None or not candidate.is_address:
                continue
            with contextlib.suppress(ValueError):  # an address that ICE cannot use
                if self._restarts is not None:
                    await self._restarts.add_candidate(candidate.value)
                else:
                    await transport.addRemoteCandidate(candidate_from_sdp(candidate.value))

    def _list_transceivers(self) -> Sequence[Transceiver]:
        return [] if self._is_ended else self._connection.getTransceivers()

    def _note_datagram(self) -> None:
        self._heard = self._now()

    def _note_state(self) -> None:
        state = self._connection.connectionState
        if state == "connected" and not self._is_ended:
            self.state = "connected"
        elif state == "failed":
            self._loop.spawn(self.close(self._explain_failure()))
        elif state == "closed":
            self._loop.spawn(self.close(Ending("left")))

    def _explain_failure(self) -> Ending:
        if self.state == "connected":
            return _SILENT
        return _NO_KEY if self._connection.iceConnectionState == "completed" else _NO_PATH

    async def _watch(self) -> None:
        """Collect a peer that never comes or falls silent."""
        while not self._is_ended:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self.state == "connecting" and self._now() - self._born > CONNECT_S:
                await self.close(_NO_PATH)
            elif self.state == "connected" and self.silent_s > SILENCE_S:
                await self.close(_SILENT)


_NO_PATH: Final = Ending(
    "no_path",
    "no network path was found between the other end and this machine",
    "open UDP between the two, name an address that can be reached in webrtc.addresses, or set a "
    "TURN server in webrtc.ice_servers",
)
_NO_KEY: Final = Ending(
    "failed",
    "the two ends could not agree on their encryption (DTLS)",
    "the answer must reach the very page or program that sent the offer",
)
_SILENT: Final = Ending(
    "silent", "the other end fell silent", "its page was closed or its network is gone"
)


def list_codecs(
    kind: Literal["video", "audio"], *, profile: str = "", h264_only: bool = False
) -> list[RTCRtpCodecCapability]:
    """Return what we take or send of `kind`, best first.

    H.264 comes first, of the profile of `profile` (a profile-level-id) where that is offered, else
    baseline, which encoders in browsers can do; retransmission (RTX) goes with all.
    """
    patches.add_h264_profiles()
    known = RTCRtpSender.getCapabilities(kind).codecs
    if kind == "audio":
        return [codec for codec in known if codec.mimeType == "audio/opus"]

    def rank(codec: RTCRtpCodecCapability) -> tuple[bool, bool, int]:
        own = str(codec.parameters.get("profile-level-id", ""))
        place = _BASELINE.index(own) if own in _BASELINE else len(_BASELINE)
        return (codec.mimeType != "video/H264", own[:2] != profile[:2], place)

    wanted = {"video/H264", "video/rtx"} | (set() if h264_only else {"video/VP8"})
    return sorted((codec for codec in known if codec.mimeType in wanted), key=rank)


def _configure(config: WebRtcConfig) -> RTCConfiguration:
    servers = [
        RTCIceServer(server.url, server.username or None, server.credential or None)
        for server in config.ice_servers
    ]
    # Never None: that means a public STUN server of somebody else.
    return RTCConfiguration(iceServers=servers)
