"""Where a recording comes in: a job's intake, which tells the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from livefuse.job.intake import Entrance, Intake
from livefuse.job.watchdog import Pulse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from livefuse.clock import Clock
    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import InputState, MediaInfo
    from livefuse.ingest.playback import Entry
    from livefuse.replay.decisions import DecisionJournal


class Recorded(Protocol):
    """What came in once (`ingest.playback.Recording`)."""

    def read(self) -> Iterator[Entry]:
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
