"""What a WHIP publisher sends, from the peers' loop to the ingest's thread: bounded."""

from __future__ import annotations

import threading
from collections import deque
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast

import av
from av.codec.context import CodecContext

from livefuse.errors import IngestEndedError
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.reader import Item, ReaderEnded
from livefuse.ingest.source import Source, set_up_decoder
from livefuse.packet import AudioInfo
from livefuse.rtc.sync import SenderLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from av.video.codeccontext import VideoCodecContext

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.rtc.jitter import Unit
    from livefuse.rtc.peer import Ending
    from livefuse.rtc.sync import Kind

MAX_ITEMS: Final = 120
"""A second of pictures and sound; a decoder that is further behind starts again at a keyframe."""
RATES_HZ: Final[dict[Kind, int]] = {"video": 90_000, "audio": 48_000}
_TIME_BASE: Final = Fraction(1, TIME_BASE_HZ)
_DECODERS: Final = {"H264": "h264", "VP8": "vp8"}
_OPUS: Final = AudioInfo("opus", RATES_HZ["audio"], 2)
_FPS: Final = 30.0
"""An offer does not say; it is what cameras give."""
_URL: Final = "whip:"
_NS_PER_MS: Final = 1_000_000


class WhipFeed:
    """One publisher's packets. It is taken from as a `Reader` is.

    `on_*` are called on the peers' loop, the rest in the ingest's thread.
    """

    def __init__(self, config: IngestConfig, clock: Clock, *, has_sound: bool) -> None:
        self._config = config
        self._clock = clock
        self._has_sound = has_sound and config.audio
        self._line = SenderLine(RATES_HZ)
        self._condition = threading.Condition()
        self._items: deque[Item] = deque()
        self._lost = 0
        self._source: Source | None = None
        self.has_ended = False  # nothing more will come
        self._cause: IngestEndedError | None = None
        self.ask_keyframe: Callable[[], None] = _do_nothing

    def now_ms(self) -> float:
        """Return monotonic time for the buffers of the peer."""
        return self._clock.now_ns() / _NS_PER_MS

    def on_unit(self, kind: Kind, codec: str, unit: Unit) -> None:
        """Take a coded picture or a packet of sound."""
        now_ns = self._clock.now_ns()
        packet = av.Packet(unit.data)
        packet.pts = packet.dts = self._line.place(kind, unit.timestamp, now_ns)
        packet.time_base = _TIME_BASE
        is_video = kind == "video"
        lost = int(unit.has_gap and is_video)
        with self._condition:
            if is_video and self._source is None:
                self._source = self._create_source(codec)
            if len(self._items) >= MAX_ITEMS:
                self._lost += sum(item.is_video for item in self._items)
                self._items.clear()
            if is_video:
                lost, self._lost = lost + self._lost, 0
            self._items.append(Item(packet, is_video, now_ns, lost))
            self._condition.notify_all()

    def on_report(self, kind: Kind, ntp_timestamp: int, timestamp: int) -> None:
        """Take a sender report."""
        self._line.note_report(kind, ntp_timestamp, timestamp)

    def on_end(self, ending: Ending | None = None) -> None:
        """Take the end, with its cause."""
        with self._condition:
            if ending is not None and ending.message and not self.has_ended:
                self._cause = IngestEndedError(ending.message, hint=ending.hint)
            self.has_ended = True
            self._condition.notify_all()

    def renew(self) -> None:
        """Begin anew with the next picture, and a decoder of its own, if there is one."""
        with self._condition:
            self._items.clear()
            self._source = None
            self._lost = 0
        self.ask_keyframe()

    def wait_opened(self, timeout_s: float) -> Source | None:
        """Return how to decode what comes, or None when nothing has come in time.

        Raises:
            ReaderEnded: the publisher is gone.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._source or self.has_ended, timeout_s)
            if self._source is None and self.has_ended:
                raise ReaderEnded(self._cause)
            return self._source

    def get(self, timeout_s: float) -> Item | None:
        """Return the oldest packet, or None when none came in time.

        Raises:
            ReaderEnded: the publisher is gone and everything has been taken.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._items or self.has_ended, timeout_s)
            if self._items:
                return self._items.popleft()
            if self.has_ended:
                raise ReaderEnded(self._cause)
            return None

    def _create_source(self, codec: str) -> Source:
        decoder = cast("VideoCodecContext", CodecContext.create(_DECODERS[codec], "r"))
        set_up_decoder(decoder, self._config, is_live=True)
        decoder.thread_count = 1  # with more FFmpeg does not mark pictures that losses hit
        return Source(
            url=_URL,
            decoder=decoder,
            time_base=_TIME_BASE,
            audio=_OPUS if self._has_sound else None,
            fps=_FPS,
            aspect=None,
            decoder_name=decoder.name,
            packets=iter(()),
            close=_do_nothing,
        )


def _do_nothing() -> None:
    """There is nobody to ask and nothing to close."""
