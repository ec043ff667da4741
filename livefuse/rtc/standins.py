"""What patches.py puts in the place of parts of aiortc 1.16. Their methods are aiortc's to call."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol

from aiortc.rtp import (
    HeaderExtensions,
    HeaderExtensionsMap,
    pack_header_extensions,
    unpack_header_extensions,
)

from livefuse.rtc.jitter import Piece, UnitBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiortc import RTCRtpReceiver
    from aiortc.rtcrtpparameters import RTCRtpCodecParameters
    from aiortc.rtp import RtpPacket

    from livefuse.rtc.bandwidth import LossBandwidth
    from livefuse.rtc.jitter import LossTracker, Unit
    from livefuse.rtc.payload import Payloads

_MAX_SSRCS: Final = 4


class UnitSink(Protocol):
    """Takes what one receiver gets; all on the peers' loop."""

    def on_unit(self, codec: str, unit: Unit) -> None:
        """Take a coded unit; `codec` is its name in upper case."""
        ...

    def on_end(self) -> None:
        """The other end has said that no more will come."""
        ...


class Tap:
    """What can be asked of a tapped receiver."""

    def __init__(self, receiver: RTCRtpReceiver, sink: UnitSink) -> None:
        self._receiver = receiver
        self._sink = sink
        self.ssrc: int | None = None

    async def request_keyframe(self) -> None:
        """Ask the sender for a keyframe (PLI); nothing before its first packet."""
        if self.ssrc is not None:
            await self._receiver._send_rtcp_pli(self.ssrc)


class Buffer:
    """Stands for aiortc's jitter buffer; hands nothing back, so that nothing is decoded."""

    def __init__(
        self,
        known: dict[int, RTCRtpCodecParameters],
        sink: UnitSink,
        now_ms: Callable[[], float],
        tap: Tap,
        *,
        is_video: bool,
    ) -> None:
        self._known = known
        self._sink = sink
        self._now_ms = now_ms
        self._tap = tap
        self._is_video = is_video
        self._units = UnitBuffer(is_video=is_video)

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        """Take a packet; return whether to ask for a keyframe, and nothing to decode."""
        self._tap.ssrc = packet.ssrc
        piece = Piece(packet.timestamp, bool(packet.marker), packet._data)  # type: ignore[attr-defined] # set by the receiver
        name = self._known[packet.payload_type].name.upper()
        is_lost = False
        for unit in self._units.add(packet.sequence_number, piece, self._now_ms()):
            is_lost |= unit.has_gap
            self._sink.on_unit(name, unit)
        return is_lost and self._is_video, None


class Nacks:
    """Stands for aiortc's generator of negative acknowledgements."""

    def __init__(self, now_ms: Callable[[], float], tracker: LossTracker) -> None:
        self._now_ms = now_ms
        self._tracker = tracker
        self.missing: list[int] = []

    def add(self, packet: RtpPacket) -> bool:
        """Take a packet; return whether `missing` is to be asked for."""
        self.missing = self._tracker.note(packet.sequence_number, self._now_ms())
        return bool(self.missing)


class Estimator:
    """Stands for aiortc's estimator of bandwidth by delay."""

    def __init__(self, bandwidth: LossBandwidth, tracker: LossTracker) -> None:
        self._bandwidth = bandwidth
        self._tracker = tracker
        self._ssrcs: dict[int, None] = {}

    def add(
        self,
        *,
        arrival_time_ms: int,
        ssrc: int,
        abs_send_time: int,  # noqa: ARG002 - what an estimate by delay would need
        payload_size: int,  # noqa: ARG002 - as above
    ) -> tuple[int, list[int]] | None:
        """Take note of a packet; return the limit in bit/s, and for whom, when it is due."""
        if len(self._ssrcs) < _MAX_SSRCS:
            self._ssrcs[ssrc] = None
        tracker = self._tracker
        limit = self._bandwidth.update(tracker.received, tracker.lost, arrival_time_ms)
        return None if limit is None else (limit, list(self._ssrcs))


class IdleQueue:
    """Stands for the decoder's queue: its thread sleeps until the end."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._has_ended = threading.Event()

    def put(self, task: object) -> None:
        """Take the end; nothing else comes."""
        if task is None and not self._has_ended.is_set():
            self._has_ended.set()
            self._on_end()

    def get(self) -> None:
        """Wait for the end."""
        self._has_ended.wait()


class PlayoutMap(HeaderExtensionsMap):
    """Stands for what a sender writes its header extensions with; adds playout-delay: at once.

    Twelve bits each for the least and the most delay, in 10 ms: both 0 here. A largest one above 0
    would let Chromium keep a picture for another turn of its compositor (16.7 ms).
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._own = (number, bytes(3))

    def set(self, values: HeaderExtensions) -> tuple[int, bytes]:
        """Return the profile and the bytes of all extensions of a packet."""
        others = unpack_header_extensions(*super().set(values))
        return pack_header_extensions([*others, self._own])


class Packer:
    """Stands for an encoder that has nothing to do."""

    def pack(self, data: Payloads) -> tuple[Sequence[bytes], int]:
        """Return the payloads and their time stamp."""
        return data.payloads, data.timestamp
