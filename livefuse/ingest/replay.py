"""`replay:FILE`: a recording as a live source, with the pauses, losses and returns it came with.

`Player` is also what a replay in virtual time takes its input from (livefuse/replay).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from livefuse.errors import IngestEndedError
from livefuse.ingest import get_recording_path
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.playback import Entry, InputEvent, open_recording
from livefuse.ingest.source import Source, renew_decoder
from livefuse.ingest.tap import LOST_PACKETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink, InputState
    from livefuse.ingest.reader import Item
    from livefuse.ingest.stage import Stage, StageMaker


class ReplayIngest:
    """Plays a recording once, at the pace of `clock`. Its end is the input's end."""

    def __init__(
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        *,
        make_stage: StageMaker = DecodeStage,
    ) -> None:
        self._path = get_recording_path(url)
        self._config = config
        self._clock = clock
        self._make_stage = make_stage
        self._stopping = threading.Event()

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` until the recording is through or `stop` is called.

        Raises:
            IngestError: the recording is missing or damaged.
        """
        sink.on_state("connecting")
        recording = open_recording(self._path, self._config)
        stage = self._make_stage(sink, self._config, self._clock, self._stopping, is_live=True)
        Player(sink, stage, self._clock, self._stopping).play(recording.read())
        sink.on_state("ended")

    def stop(self) -> None:
        """Ask `run` to return; from any thread, returns at once."""
        self._stopping.set()


class Player:
    """Puts what came into a stage at the times it came. One thread, or an actor of virtual time."""

    def __init__(
        self, sink: IngestSink, stage: Stage, clock: Clock, stopping: threading.Event
    ) -> None:
        """Times count from now on."""
        self._sink = sink
        self._stage = stage
        self._clock = clock
        self._stopping = stopping
        self._start_ns = clock.now_ns()
        self._source: Source | None = None
        self._is_stalled = False

    def play(self, entries: Iterable[Entry]) -> None:
        """Take all of a recording, and after a true end what the decoder still holds."""
        for entry in entries:
            came_ns = entry.opened_ns if isinstance(entry, Source) else entry.arrival_ns
            arrival_ns = self._start_ns + came_ns
            if self._clock.wait(self._stopping, arrival_ns - self._clock.now_ns()):
                return
            if isinstance(entry, Source):
                self._begin(entry)
            elif isinstance(entry, InputEvent):
                self._tell(entry.state)
            else:
                self._take(entry, arrival_ns)
        if self._source is not None and self._source.is_finite:
            self._stage.flush()

    def _begin(self, source: Source) -> None:
        self._source = source
        self._stage.begin_segment(source)

    def _tell(self, state: InputState) -> None:
        """Pass on what the stage does not say itself: `live`, with the first picture."""
        if state != "live" or self._is_stalled:
            self._sink.on_state(state)
        self._is_stalled = state == "stalled"
        if state == "lost":
            self._sink.count("reconnect")

    def _take(self, item: Item, arrival_ns: int) -> None:
        if item.dropped_before:
            self._sink.count(LOST_PACKETS, item.dropped_before)
            self._stage.distrust(arrival_ns)
        try:
            self._stage.take(item.packet, arrival_ns, is_video=item.is_video)
        except IngestEndedError as error:
            self._begin_again(error)

    def _begin_again(self, error: IngestEndedError) -> None:
        """Go on as after another dial, as a live job does when nothing can be decoded any more."""
        if self._source is not None:
            self._sink.on_state("lost", error)
            self._sink.count("reconnect")
            self._source.decoder = renew_decoder(self._source)
            self._begin(self._source)
