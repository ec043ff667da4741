"""A recording's entries at their times: what a job's ingest is to a replay."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from livefuse.errors import IngestEndedError
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.playback import InputEvent
from livefuse.ingest.source import Source, renew_decoder
from livefuse.intake import Entrance, Intake
from livefuse.watchdog import Pulse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.decisions import DecisionJournal
    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import InputState, MediaInfo
    from livefuse.ingest.reader import Item
    from livefuse.virtual import VirtualClock


class Recorded(Protocol):
    """What came in once (`ingest.playback.Recording`)."""

    def read(self) -> Iterator[Source | Item | InputEvent]:
        """Yield what came, in the order of arrival; times count from the recording's start."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what it is, for the report."""
        ...


class RecordedIntake(Intake):
    """A job's intake that tells the journal what comes."""

    def __init__(
        self,
        entrance: Entrance,
        journal: DecisionJournal,
        clock: Clock,
        open_stages: Callable[[MediaInfo], None],
    ) -> None:
        super().__init__(entrance, Pulse("decode", clock))
        self._journal = journal
        self._open_stages = open_stages

    def on_media(self, media: MediaInfo) -> None:
        """Take the description, and have the stages brought up."""
        super().on_media(media)
        self._open_stages(media)

    def on_frame(self, frame: Frame) -> None:
        """Take a filled frame."""
        self._journal.note_arrived(frame)
        super().on_frame(frame)

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Take a change of state."""
        self._journal.note_input(state)
        super().on_state(state, error)

    def count(self, event: str, amount: int = 1) -> None:
        """Count an event."""
        super().count(event, amount)
        if event == "dropped_pool":
            self._journal.note_missed("pool")


class Feed:
    """Takes a recording's entries at their times into a decode stage. One actor."""

    def __init__(
        self, sink: RecordedIntake, config: Config, clock: VirtualClock, *, is_lossless: bool
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._base_ns = clock.now_ns()
        self._source: Source | None = None
        self._stage = DecodeStage(
            sink, config.ingest, clock, threading.Event(), is_live=True, every_frame=is_lossless
        )

    def take(self, entry: Source | Item | InputEvent) -> None:
        """Wait for the entry's time and do what it says."""
        if isinstance(entry, Source):
            self._clock.sleep_until(self._base_ns + entry.opened_ns)
            self._begin(entry)
            return
        arrival_ns = self._base_ns + entry.arrival_ns
        self._clock.sleep_until(arrival_ns)
        if isinstance(entry, InputEvent):
            self._note_state(entry.state)
        else:
            self._take_packet(entry, arrival_ns)

    def finish(self) -> None:
        """Take what the decoder still holds where the end was a true one."""
        if self._source is not None and self._source.is_finite:
            self._stage.flush()

    def _begin(self, source: Source) -> None:
        self._source = source
        self._stage.begin_segment(source)

    def _take_packet(self, item: Item, arrival_ns: int) -> None:
        if item.dropped_before:
            self._sink.count("dropped_late_packets", item.dropped_before)
            self._stage.distrust(arrival_ns)
        try:
            self._stage.take(item.packet, arrival_ns, is_video=item.is_video)
        except IngestEndedError as error:
            self._begin_again(error)

    def _begin_again(self, error: IngestEndedError) -> None:
        """Go on as after another dial, as a live job does when nothing can be decoded any more."""
        source = self._source
        if source is not None:
            self._sink.on_state("lost", error)
            self._sink.count("reconnect")
            source.decoder = renew_decoder(source)
            self._begin(source)

    def _note_state(self, state: InputState) -> None:
        if state == "live":
            return  # said by the decode stage, with the first picture
        self._sink.on_state(state)
        if state == "lost":
            self._sink.count("reconnect")
