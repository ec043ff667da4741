"""One recording from start to stop: an ingest that decodes nothing, a recorder, signals."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import uvloop

from livefuse.clock import NS_PER_S, SystemClock
from livefuse.control.background import call_in_thread, catch_signals
from livefuse.control.console import complain, say
from livefuse.frame import FramePool
from livefuse.ingest import create_ingest, get_kind
from livefuse.ingest.recording import Recorder
from livefuse.ingest.tap import Tap
from livefuse.redact import redact_text, redact_url
from livefuse.telemetry import get_logger, set_up_logging

if TYPE_CHECKING:
    from pathlib import Path

    from livefuse.config import Config
    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import InputState, MediaInfo
    from livefuse.packet import Packet

_LOOK_S: Final = 0.25
_JOIN_S: Final = 5.0
_CALM: Final = frozenset({"connecting", "live", "ended"})


@dataclass(frozen=True, slots=True)
class RecordRequest:
    """What is to be recorded, and where. `source` may hold secrets."""

    source: str
    path: Path
    config: Config
    for_s: float | None
    quiet: bool


def run_recording(request: RecordRequest) -> None:
    """Record until the input ends, `--for` is over since it is live, or a signal comes.

    Raises:
        LivefuseError: the source cannot be opened, or the file cannot be written.
    """
    set_up_logging(request.config.log, (request.source,))
    uvloop.run(_Session(request).run())


class RecordSink:
    """Takes what an ingest without a job gives. Only cameras are decoded, to be judged."""

    def __init__(self, source: str) -> None:
        self.live_ns: int | None = None
        self._clock = SystemClock()
        self._source = source
        self._state: InputState = "connecting"
        self._pool: FramePool | None = None
        self._log = get_logger("record")

    def on_media(self, media: MediaInfo) -> None:
        """Make place for a camera's pictures."""
        self._pool = FramePool(media.width, media.height, 2)

    def acquire_frame(self) -> Frame | None:
        """Lend a frame."""
        return self._pool.acquire() if self._pool is not None else None

    def on_frame(self, frame: Frame) -> None:
        """Take it back."""
        if self._pool is not None:
            self._pool.release(frame)

    def on_audio(self, packet: Packet) -> None:
        """Take sound; it is recorded already."""

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Note what the input does, and say it once."""
        if state == "live" and self.live_ns is None:
            self.live_ns = self._clock.now_ns()
        if state != self._state:
            cause = redact_text(str(error or ""), (self._source,))
            log = self._log.info if state in _CALM else self._log.warning
            log("input", state=state, cause=cause)
        self._state = state

    def count(self, event: str, amount: int = 1) -> None:
        """Count nothing: the recording tells."""

    def begin_work(self) -> None:
        """Nobody watches."""

    def end_work(self) -> None:
        """Nobody watches."""


class _Session:
    """The life of one recording on the loop's thread; the ingest and the recorder have theirs."""

    def __init__(self, request: RecordRequest) -> None:
        self._request = request
        self._clock = SystemClock()
        self._sink = RecordSink(request.source)
        config = request.config
        self._recorder = Recorder(
            request.path, request.source, self._clock, overwrite=config.record.overwrite
        )
        self._ingest = create_ingest(
            request.source,
            config.ingest,
            self._clock,
            paced=True,
            every_frame=False,
            tap=Tap(self._recorder.put, decodes=get_kind(request.source) == "camera"),
        )

    async def run(self) -> None:
        with catch_signals() as stop:
            ended = call_in_thread("ingest", lambda: self._ingest.run(self._sink))
            try:
                await self._watch({ended, stop})
            finally:
                self._ingest.stop()
                await asyncio.wait([ended], timeout=_JOIN_S)
                is_closed = await call_in_thread("close", self._recorder.close)
        self._finish(ended, is_closed=is_closed)

    async def _watch(self, ends: set[asyncio.Future[Any]]) -> None:
        is_told = self._request.quiet
        while self._recorder.error is None:
            done, _ = await asyncio.wait(ends, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            live_ns, for_s = self._sink.live_ns, self._request.for_s
            if done:
                return
            if live_ns is None:
                continue
            if not is_told:
                is_told = True
                say(f"recording {redact_url(self._request.source)}, Ctrl-C stops")
            if for_s is not None and self._clock.now_ns() - live_ns >= for_s * NS_PER_S:
                return

    def _finish(self, ended: asyncio.Future[None], *, is_closed: bool) -> None:
        recorder, path = self._recorder, self._request.path
        if recorder.error is not None:
            raise recorder.error
        if ended.done():
            ended.result()
        if not is_closed:
            complain(f"{path} could not be finished in time; what is there can be played")
        if recorder.dropped:
            complain(f"the disc was too slow: {recorder.dropped} packets are missing")
        if self._request.quiet:
            return
        if not recorder.packets:
            say("nothing came in: no file was written")
            return
        say(f"{recorder.packets} packets, {recorder.size_bytes / 1e6:.1f} MB in {path}")
        say(f"as a live source again: --from replay:{path}")
