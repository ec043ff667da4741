"""`replay:FILE`: a recording as a live source, with the pauses, losses and returns it came with."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from livefuse.ingest import get_recording_path
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.playback import InputEvent, open_recording
from livefuse.ingest.reader import Item
from livefuse.ingest.tap import LOST_PACKETS

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.ingest.base import IngestSink
    from livefuse.ingest.playback import Recording
    from livefuse.ingest.source import Source
    from livefuse.ingest.stage import Stage, StageMaker


class ReplayIngest:
    """Plays a recording once, at the pace of `clock`. Its end is the input's end.

    It waits only by its clock, so it runs in virtual time as well.
    """

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
        self._is_stalled = False

    def run(self, sink: IngestSink) -> None:
        """Fill `sink` until the recording is through or `stop` is called.

        Raises:
            IngestError: the recording is missing or damaged.
        """
        sink.on_state("connecting")
        recording = open_recording(self._path, self._config)
        stage = self._make_stage(sink, self._config, self._clock, self._stopping, is_live=True)
        self._play(recording, sink, stage)
        sink.on_state("ended")

    def stop(self) -> None:
        """Ask `run` to return; from any thread, returns at once."""
        self._stopping.set()

    def _play(self, recording: Recording, sink: IngestSink, stage: Stage) -> None:
        start_ns = self._clock.now_ns()
        source: Source | None = None
        for happened in recording.read():
            arrival_ns = (
                happened.arrival_ns
                if isinstance(happened, (Item, InputEvent))
                else happened.opened_ns
            ) + start_ns
            if self._clock.wait(self._stopping, arrival_ns - self._clock.now_ns()):
                return
            match happened:
                case Item():
                    _take(happened, arrival_ns, sink, stage)
                case InputEvent():
                    self._tell(happened, sink)
                case _:
                    source = happened
                    stage.begin_segment(source)
        if source is not None and source.is_finite:
            stage.flush()

    def _tell(self, event: InputEvent, sink: IngestSink) -> None:
        """Pass on what the stage cannot know; the end comes when all is through."""
        if event.state in ("stalled", "lost", "connecting") or (
            event.state == "live" and self._is_stalled
        ):
            sink.on_state(event.state)
        self._is_stalled = event.state == "stalled"
        if event.state == "lost":
            sink.count("reconnect")


def _take(item: Item, arrival_ns: int, sink: IngestSink, stage: Stage) -> None:
    if item.dropped_before:
        sink.count(LOST_PACKETS, item.dropped_before)
        stage.distrust(arrival_ns)
    stage.take(item.packet, arrival_ns, is_video=item.is_video)
