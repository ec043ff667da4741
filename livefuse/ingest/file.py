"""A file, at its own speed (published live) or as fast as it goes (file to file)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import av.error

from livefuse.clock import NS_PER_S
from livefuse.errors import IngestError, IngestUnsupportedError
from livefuse.ingest import get_file_path
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.diagnose import FOREIGN_ERRORS, diagnose_open_error
from livefuse.ingest.dial import Dial, build_whitelists
from livefuse.ingest.pacer import Pacer
from livefuse.ingest.source import open_source

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.source import Source
    from livefuse.ingest.stage import Stage, StageMaker


class FileIngest:
    """A media file by its path or file:// URL. Decoded in the ingest's own thread."""

    def __init__(  # noqa: PLR0913 - as create_ingest
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        *,
        paced: bool,
        every_frame: bool,
        make_stage: StageMaker = DecodeStage,
        is_restricted: bool = False,
    ) -> None:
        """Take what is to be read; with `is_restricted` it may not be a playlist."""
        self._url = url
        self._options = build_whitelists("file", is_restricted=is_restricted)
        self._config = config
        self._clock = clock
        self._paced = paced
        self._every_frame = every_frame
        self._make_stage = make_stage
        self._stopping = threading.Event()

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` until the file is through or `stop` is called.

        Raises:
            IngestError: it is not there, not media, or not decodable.
        """
        sink.on_state("connecting")
        stage = self._make_stage(
            sink,
            self._config,
            self._clock,
            self._stopping,
            is_live=False,
            every_frame=self._every_frame,
        )
        source = self._open()
        try:
            stage.begin_segment(source)
            self._take_all(source, stage)
        finally:
            source.close()
        if not stage.has_media and not self._stopping.is_set():
            raise IngestUnsupportedError(
                f"{self._url} holds no picture that can be decoded",
                hint="check that the file is complete",
            )
        sink.on_state("ended")

    def stop(self) -> None:
        """Ask `run` to return; from any thread, returns at once."""
        self._stopping.set()

    def _open(self) -> Source:
        started_ns = self._clock.now_ns()
        try:
            return open_source(
                # With its prefix: FFmpeg would take `a:b.mp4` for an address of the protocol `a`.
                Dial(f"file:{get_file_path(self._url)}", self._options),
                self._config,
                is_live=False,
                url=self._url,
                frame_threads=self._every_frame,
            )
        except IngestError:
            raise
        except FOREIGN_ERRORS as error:
            elapsed_s = (self._clock.now_ns() - started_ns) / NS_PER_S
            raise diagnose_open_error(error, self._url, self._config, elapsed_s) from None

    def _take_all(self, source: Source, stage: Stage) -> None:
        pacer = Pacer(self._clock, self._stopping) if self._paced else None
        try:
            for is_video, packet in source.packets:
                if self._stopping.is_set():
                    return
                stamp = packet.dts if packet.dts is not None else packet.pts
                now_ns = pacer.wait_for(stamp, packet.time_base) if pacer else self._clock.now_ns()
                stage.take(packet, now_ns, is_video=is_video)
        except av.error.FFmpegError as error:
            if not stage.has_media:
                raise diagnose_open_error(error, self._url, self._config, 0.0) from None
            # What is left of a damaged or truncated file cannot be read; what was read counts.
        if not self._stopping.is_set():
            stage.flush()
