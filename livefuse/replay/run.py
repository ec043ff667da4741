"""One replay, from a recording to its report."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from livefuse.clock import NS_PER_S
from livefuse.errors import IngestUnsupportedError
from livefuse.ingest.decode import DecodeStage
from livefuse.ingest.replay import Player
from livefuse.job.intake import Entrance
from livefuse.job.stages import Stages
from livefuse.pipeline.aside import InlineExecutor
from livefuse.publish.fanout import FanOut
from livefuse.replay.decisions import DecisionJournal, ReplayReport
from livefuse.replay.intake import RecordedIntake
from livefuse.ring import RingClosed
from livefuse.safety.mark_keys import REPLAY_KEYS, JobMarks
from livefuse.telemetry import Telemetry
from livefuse.token import TokenCell
from livefuse.virtual import CostModel, Costs, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.ingest.base import MediaInfo
    from livefuse.job.spec import JobSpec
    from livefuse.pipeline.steps import Pipeline
    from livefuse.replay.intake import Recorded
    from livefuse.ring import RingMode

JOB_ID: Final = "replay"
_MARKS: Final = JobMarks(JOB_ID, REPLAY_KEYS)
_START_NS: Final = NS_PER_S  # never 0: on a real machine time has always begun long ago
_FINISH_S: Final = 60.0


class KnownCosts(CostModel, Protocol):
    """A cost model that can tell what it was, or became."""

    @property
    def costs(self) -> Costs:
        """The costs that give the same decisions again."""
        ...


class Replay:
    """One replay. `run` it once; it takes the calling thread and some of its own.

    Args:
        spec: what is to be done; its mode says whether late frames are dropped, as live, or none.
        config: as a job's. Nothing is served by HTTP, and nothing waits for `publish.delay_ms`.
        recording: what came in.
        create_pipeline: makes a pipeline for the mode, on a clock, its side work run where told.
        costs: how long work takes.

    Raises:
        ConfigError: a target cannot be used.
        TokenError: the operations are unknown or out of order.
    """

    def __init__(
        self,
        spec: JobSpec,
        config: Config,
        recording: Recorded,
        create_pipeline: Callable[[RingMode, Clock, Executor], Pipeline],
        costs: KnownCosts,
    ) -> None:
        self.mode: RingMode = "every_frame" if spec.mode == "every_frame" else "live"
        self.clock = VirtualClock(costs, start_ns=_START_NS)
        self.journal = DecisionJournal(self.clock, self.clock.unmeasured)
        self.telemetry = Telemetry(self.clock, self.journal)
        self._spec, self._config, self._costs = spec, config, costs
        self._recording = recording
        self._token = TokenCell(spec.create_token(self.clock.epoch_s()))
        aside = _Aside(self.clock)
        self._pipeline = create_pipeline(self.mode, self.clock, aside)
        self._entrance = Entrance(JOB_ID, self.mode, self.telemetry, ())
        self._entrance.is_ready.set()
        # Files take their time: none of it passes here, so nothing may be dropped for it. What has
        # a thread of its own outside of virtual time (players, a delay) is left out with that.
        self._fanout = FanOut.create(
            spec.targets, self._config, self.clock, self._entrance.request_keyframe, lossless=True
        )
        self._media: MediaInfo | None = None

    def run(self) -> ReplayReport:
        """Replay all of it and return what was decided.

        Raises:
            LivefuseError: the recording, a model or an output cannot be used.
        """
        try:
            self._pipeline.prepare(self._token.get())
            self.clock.start("decode", self._decode)
            self.clock.run_until_done()
        finally:
            self.clock.stop()
            self._pipeline.close()
            self._fanout.close(_FINISH_S)
        return self._report()

    def list_outputs(self) -> list[dict[str, Any]]:
        """Return the state of each output, as a job's statistics have it."""
        return [msgspec.to_builtins(status) for status in self._fanout.statuses()]

    def open(self, media: MediaInfo) -> None:
        """Bring up the stages, now that the pictures' size is known. From the decode actor."""
        self._media = media
        with self.clock.unmeasured():
            token = self._token.get()
            self._pipeline.warm_up(media.width, media.height, token)
            stages = self._entrance.stages = Stages(
                self._config, media, self.mode, self.telemetry, self._fanout, _MARKS
            )
            self._fanout.open(stages.streams)
            for name, run in stages.list_loops(self._pipeline, self._token).items():
                self.clock.start(name, _end_quietly(run))

    def _decode(self) -> None:
        """Be the input: what came when it came."""
        sink = RecordedIntake(self._entrance, self.journal, self.clock, self.open)
        stopping = threading.Event()  # never set: all of it is replayed
        stage = DecodeStage(
            sink,
            self._config.ingest,
            self.clock,
            stopping,
            is_live=True,
            every_frame=self.mode == "every_frame",
        )
        try:
            Player(sink, stage, self.clock, stopping).play(self._recording.read())
        finally:
            if self._entrance.stages is not None:
                self._entrance.stages.end_input()
        if self._media is None:
            raise IngestUnsupportedError(
                "the recording holds no picture that can be decoded",
                hint="check the codec, or that it began with a keyframe",
            )

    def _report(self) -> ReplayReport:
        rungs = self._config.governor.rungs
        media = self._media
        return ReplayReport(
            recording=self._recording.describe(),
            job={
                "operations": list(self._spec.operations),
                "source_face": self._spec.source_face,
                "mode": self.mode,
                "size": f"{media.width}x{media.height}" if media is not None else "",
                "fps": round(media.fps, 3) if media is not None else 0.0,
            },
            summary=self.journal.summarise(
                self.telemetry, rungs[0].name if self.mode == "live" else ""
            ),
            rungs=tuple(self.journal.rungs),
            input=tuple(self.journal.input),
            frames=tuple(self.journal.frames),
            costs=self._costs.costs,
        )


class _Aside(InlineExecutor):
    """Does side work at once: its outcome is there with the next frame, and it takes no time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - Executor's signature
        with self._clock.unmeasured():
            return super().submit(fn, *args, **kwargs)


def _end_quietly(run: Callable[[], None]) -> Callable[[], None]:
    """Return `run`, for which a closed ring is the end and no fault, as in a job."""

    def guard() -> None:
        with contextlib.suppress(RingClosed):
            run()

    return guard
