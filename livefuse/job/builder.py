"""Makes the parts of a job: the first time, and anew when one hangs or has died."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from livefuse.clock import NS_PER_MS
from livefuse.errors import JobError
from livefuse.ingest import create_ingest, get_kind
from livefuse.ingest.keeper import Keeper
from livefuse.job.crew import Crew, Renewal
from livefuse.job.intake import Entrance, Intake
from livefuse.job.loading import Loading
from livefuse.job.watchdog import LOADING, Pulse
from livefuse.publish import is_file_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from livefuse.config import Config
    from livefuse.ingest.base import Ingest
    from livefuse.ingest.whip import WhipIngest
    from livefuse.job.spec import JobSpec
    from livefuse.job.stages import Loops, Stages
    from livefuse.pipeline.steps import Pipeline
    from livefuse.ring import RingMode
    from livefuse.token import TokenCell


class Builder:
    """One job's. All but `stop_ingest` from the supervisor's thread.

    Raises:
        ConfigError: the source's URL cannot be used.
    """

    def __init__(
        self,
        spec: JobSpec,
        config: Config,
        token: TokenCell,
        entrance: Entrance,
        crew: Crew,
        create_pipeline: Callable[[RingMode], Pipeline],
    ) -> None:
        self.loading: Loading | None = None
        self.forget_networks: Callable[[], None] = _do_nothing
        self._spec = spec
        self._config = config
        self._token = token
        self._entrance = entrance
        self._crew = crew
        self._create_pipeline = create_pipeline
        self.keeper = Keeper.create(config.replay, entrance.job_id, spec.source, entrance.clock)
        self._ingest = self._create_ingest()
        self._intake: Intake | None = None
        self._is_stopping = False

    @property
    def is_loading(self) -> bool:
        """Whether frames are covered since networks are not ready."""
        return self.loading is not None and not self.loading.is_ready

    @property
    def whip(self) -> WhipIngest | None:
        """Where a browser sends its camera to, when that is the source."""
        if get_kind(self._spec.source) != "whip":
            return None
        ingest = getattr(self._ingest, "inner", self._ingest)  # a tap may stand around it
        return cast("WhipIngest", ingest)

    def start_loading(self, pulse: Pulse | None = None) -> Loading:
        """Make a pipeline and let it load in a thread of its own; with `pulse` it may fail.

        Raises:
            LivefuseError: it cannot be made.
        """
        loading = Loading(self._create_pipeline(self._entrance.mode), self._token.get())
        self.loading = loading

        def load() -> None:
            if pulse is not None:
                pulse.begin(LOADING)
            loading.run()
            if pulse is not None:
                pulse.end()

        self._crew.spawn("load", load, pulse)
        return loading

    def start_ingest(self, when_over: Callable[[], None]) -> None:
        """Let frames come; `when_over` is called from the decode thread when there are no more."""
        clock = self._entrance.clock
        pulse = Pulse("decode", clock, self._config.watchdog.step_limit_ms * NS_PER_MS)
        intake = self._intake = Intake(self._entrance, pulse)
        ingest = self._ingest

        def decode() -> None:
            ingest.run(intake)
            if intake is self._intake:
                when_over()

        self._crew.spawn("decode", decode, pulse)

    def start_loops(self, stages: Stages, loops: Loops) -> None:
        """Let `loops` run, each in a thread of its own."""
        for name, run in loops.items():
            self._crew.spawn(name, run, stages.pulses.get(name))

    def stop_ingest(self) -> None:
        """Let no more frames come, for good. From any thread."""
        self._is_stopping = True
        self._ingest.stop()

    def write_recording(self, path: Path | None = None) -> Path:
        """Write the last seconds of the input (replay.keep_s), to `path` or into replay.folder.

        From any thread; takes up to a second. Returns where it was written.

        Raises:
            JobError: nothing is kept, or nothing came yet.
            PublishError: it cannot be written.
        """
        if self.keeper is None:
            raise JobError("nothing is kept of the input", hint="set replay.keep_s, such as 20")
        return self.keeper.write(path)

    def end(self, reason: str) -> None:
        """Finish what is being written of the input, and write it if there is a `reason` to.

        The last thing that happens to a job: its pictures are let go.
        """
        if self._entrance.stages is not None:
            self._entrance.stages.discard_pictures()
        if self.keeper is not None:
            self.keeper.end(reason)

    def list_renewals(
        self, stages: Stages, when_over: Callable[[], None], *, is_live: bool
    ) -> dict[str, Renewal]:
        """Return how each part is made anew. A file that cannot be read on is at its end."""

        def renew_pipeline() -> None:
            self.forget_networks()
            limit_ns = self._config.watchdog.load_limit_ms * NS_PER_MS
            pulse = Pulse("pipeline-load", self._entrance.clock, limit_ns)
            pulse.has_worked = True  # its only piece of work: the limit is meant for that
            loading = self.start_loading(pulse)
            loading.set_size(*stages.size_px)
            self.start_loops(stages, stages.renew_treatment(loading.pipeline, self._token))

        def renew_encode() -> None:
            self.start_loops(stages, stages.renew_encode())

        def renew_audio() -> None:
            self.start_loops(stages, stages.renew_audio())

        renewals = {
            "pipeline": Renewal(stages.abandon_treatment, renew_pipeline),
            # The one before is in nobody's way, and is refused once another works.
            "encode": Renewal(_do_nothing, renew_encode),
            "audio": Renewal(_do_nothing, renew_audio),
        }
        if is_live:
            renewals["decode"] = Renewal(
                self._abandon_ingest, lambda: self._renew_ingest(when_over)
            )
        return renewals

    def _abandon_ingest(self) -> None:
        if self._intake is not None:
            self._intake.retire()
        self._ingest.stop()
        self._entrance.note_state("lost")

    def _renew_ingest(self, when_over: Callable[[], None]) -> None:
        self._ingest = self._create_ingest()
        self.start_ingest(when_over)
        if self._is_stopping:
            self._ingest.stop()

    def _create_ingest(self) -> Ingest:
        config, media = self._config.ingest, self._entrance.media
        if get_kind(self._spec.source) == "whip" and config.canvas == "source":
            config = msgspec.structs.replace(config, canvas=self._config.webrtc.canvas)
        if media is not None:
            # Outputs have been told a size, and the pool has it.
            config = msgspec.structs.replace(config, canvas=f"{media.width}x{media.height}")
        is_lossless = self._entrance.mode == "every_frame"
        return create_ingest(
            self._spec.source,
            config,
            self._entrance.clock,
            # A file goes at its own speed whenever somebody may be watching.
            paced=not (is_lossless and all(map(is_file_url, self._spec.targets))),
            every_frame=is_lossless,
            webrtc=self._config.webrtc,
            access=self._config.access,
            tap=self.keeper.tap if self.keeper is not None else None,
        )


def _do_nothing() -> None:
    """Nothing is in the way."""
