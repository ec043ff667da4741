"""Dial a live source and stay with it: RTSP, RTMP, HTTP, HLS, UDP, TCP, SRT by FFmpeg."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import IngestAuthError, IngestError, IngestTimeoutError, IngestUnsupportedError
from livefuse.ingest.connection import Connection
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.diagnose import FOREIGN_ERRORS, diagnose_from_afar, free_error
from livefuse.ingest.dial import Dialler
from livefuse.ingest.reader import Abandoned, Reader
from livefuse.ingest.source import find_hardware, get_scheme, open_source
from livefuse.ingest.srt import start_srt
from livefuse.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.clock import Clock
    from livefuse.config import AccessConfig, IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.child import ReadingChild
    from livefuse.ingest.source import Source
    from livefuse.ingest.stage import Stage, StageMaker

_BACKOFF_SHARE: Final = 0.05
_JITTER: Final = 0.2
_SCHEMES_OF_FFMPEG: Final = {"hls": "https"}


class PullIngest:
    """A live source by its URL. The first failure is raised; after a later one it dials again."""

    def __init__(
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        *,
        choose: Callable[[float, float], float] = random.uniform,
        make_stage: StageMaker = DecodeStage,
        access: AccessConfig | None = None,
    ) -> None:
        self._url = url
        self._dialler = Dialler(url, access, config.open_timeout_ms / 1000)
        self._config = config
        self._clock = clock
        self._choose = choose
        self._make_stage = make_stage
        self._stopping = threading.Event()
        self._reader: Reader | None = None
        self._abandoned = Abandoned()
        self._uses_hardware = True

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` until stopped, or until a file over HTTP is through.

        Raises:
            IngestError: it could not be opened the first time.
            RefusedError: it is where no job of this one's may go, or leads there.
        """
        stage = self._make_stage(sink, self._config, self._clock, self._stopping, is_live=True)
        try:
            self._stay(sink, stage)
        finally:
            self._dialler.close()
        sink.on_state("ended")

    def stop(self) -> None:
        """Ask `run` to return; from any thread, returns at once."""
        self._stopping.set()
        reader = self._reader
        if reader is not None:
            reader.interrupt()

    def _stay(self, sink: IngestSink, stage: Stage) -> None:
        lost_ns: int | None = None
        while not self._stopping.is_set():
            sink.on_state("connecting")
            before = stage.frames
            error = self._play(sink, stage)
            if error is None or self._stopping.is_set():
                break
            if self._gives_up_hardware(error, stage):
                continue
            if not stage.has_media:
                raise self._dialler.explain() if self._dialler.has_refused else error
            sink.on_state("lost", error)
            sink.count("reconnect")
            if lost_ns is None or stage.frames > before:
                lost_ns = self._clock.now_ns()
            self._clock.wait(self._stopping, self._get_delay_ns(error, lost_ns))

    def _play(self, sink: IngestSink, stage: Stage) -> IngestError | None:
        """Live through one connection; return why it ended, None for a true end."""
        reader = None
        if self._abandoned.is_full:
            return IngestTimeoutError(
                f"{redact_url(self._url)} lets every connection hang",
                hint="it is dialled again when the first of them has ended",
            )
        try:
            reader = self._reader = self._create_reader()
            link = Connection(self._url, self._config, self._clock, self._stopping, sink, stage)
            link.run(reader)
        except IngestError as error:
            return free_error(error)
        finally:
            if reader is not None:
                self._abandoned.close(reader, sink)
        return None

    def _create_reader(self) -> Reader:
        if get_scheme(self._url) == "srt":
            child = start_srt(self._dialler.choose(self._url).address)
            return Reader(lambda: self._open_srt(child), self._clock, cancel=child.stop)
        scheme, _, rest = self._url.partition("://")
        scheme = scheme.lower()  # FFmpeg knows no RTSP://
        target = f"{_SCHEMES_OF_FFMPEG.get(scheme, scheme)}://{rest}"
        return Reader(lambda: self._open(target), self._clock)

    def _open_srt(self, child: ReadingChild) -> Source:
        try:
            source = self._open(child.stdout)
        except BaseException:
            child.close()
            raise

        def close() -> None:
            source.close()
            child.close()

        return replace(source, close=close)

    def _open(self, target: object) -> Source:
        """Open in the reader's thread."""
        if isinstance(target, str):
            target = self._dialler.choose(target)
        if not self._dialler.is_restricted:
            return self._open_dial(target)
        started_ns = self._clock.now_ns()
        try:
            return self._open_dial(target)
        except FOREIGN_ERRORS as error:
            elapsed_s = (self._clock.now_ns() - started_ns) / NS_PER_S
            raise diagnose_from_afar(error, self._url, self._config, elapsed_s) from None

    def _open_dial(self, target: object) -> Source:
        """Open; a hardware decoder that fails is not tried again."""
        hardware = find_hardware(self._config) if self._uses_hardware else None
        if hardware is not None:
            try:
                return open_source(
                    target, self._config, is_live=True, url=self._url, hardware=hardware
                )
            except (OSError, RuntimeError, ValueError):
                self._uses_hardware = False
        return open_source(target, self._config, is_live=True, url=self._url)

    def _gives_up_hardware(self, error: IngestError, stage: Stage) -> bool:
        """Say whether to open again without hardware, as that decoder gave no picture."""
        is_first = self._uses_hardware and not stage.has_media
        if not (is_first and isinstance(error, IngestUnsupportedError)):
            return False
        self._uses_hardware = False
        return find_hardware(self._config) is not None

    def _get_delay_ns(self, error: IngestError, lost_ns: int) -> int:
        """Return a twentieth of the time since the loss, within bounds, give or take a fifth.

        So what is back after a minute is back on the air within five seconds, and what is gone
        for good is asked seldom. A wrong password is asked as seldom as allowed. Waiting for what
        is sent to us (UDP) bothers nobody.
        """
        longest = self._config.reconnect_max_ms * NS_PER_MS
        shortest = min(self._config.reconnect_min_ms * NS_PER_MS, longest)
        if isinstance(error, IngestAuthError):
            return longest
        if get_scheme(self._url) == "udp":
            return shortest
        # Those that are away for long are not to be dialled at once either, and none too seldom.
        wanted = min((self._clock.now_ns() - lost_ns) * _BACKOFF_SHARE, longest / (1 + _JITTER))
        jitter = self._choose(1 - _JITTER, 1 + _JITTER)
        return int(min(max(wanted, shortest) * jitter, longest))
