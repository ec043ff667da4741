"""One stream's life on one page: ingest -> ring -> pipeline -> ring -> encode -> outputs.

Threads of a job, all daemon, all ended by `stop`:
    decode     runs the ingest, which fills frames of the pool and puts them into the first ring
    pipeline   takes the oldest frame, has it edited in place, puts it into the second ring
    encode     encodes it once for every output and gives the frame back to the pool
    audio      relays or transcodes sound to the same outputs; it never meets the pipeline
    supervise  brings these up and takes them down, in order; in between it looks at them, and what
               hangs or has died is made anew while the output goes on (crew.py)
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

import msgspec

from livefuse.clock import NS_PER_MS, Clock
from livefuse.crew import Crew, Renewal, start_stage
from livefuse.errors import JobError, LivefuseError
from livefuse.ingest import create_ingest
from livefuse.intake import Entrance, Intake
from livefuse.loading import Loading
from livefuse.publish import is_file_url
from livefuse.publish.fanout import FanOut
from livefuse.redact import redact_text
from livefuse.report import Report
from livefuse.stages import Stages
from livefuse.telemetry import Statistics, Telemetry
from livefuse.token import Token, TokenCell
from livefuse.watchdog import Pulse

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.ingest.base import Ingest, MediaInfo
    from livefuse.pipeline.steps import Pipeline
    from livefuse.publish.flv import LiveStream
    from livefuse.ring import RingMode
    from livefuse.spec import JobSpec
    from livefuse.stages import Loops

JobState = Literal["connecting", "running", "stopping", "stopped", "failed"]
_JOIN_S, _FINISH_S = 2.0, 60.0  # a stop is short; a file that is to be whole gets its time
_LOOK_S = 0.25


class Job:
    """A running stream. `start` returns at once; `wait_started` tells how it went.

    The constructor opens nothing but checks all that it can.

    Raises:
        ConfigError: a URL, an operation or a value cannot be used.
        TokenError: the operations are unknown or out of order.
        PublishError: a file cannot be written.
    """

    def __init__(
        self,
        job_id: str,
        spec: JobSpec,
        config: Config,
        clock: Clock,
        create_pipeline: Callable[[RingMode], Pipeline],
        forget_networks: Callable[[], None] = lambda: None,
    ) -> None:
        """`forget_networks` lets the next pipeline load its networks anew."""
        self.job_id = job_id
        self.spec = spec
        self.mode = spec.choose_mode()
        self.telemetry = Telemetry(clock)
        self.token = TokenCell(spec.create_token(clock.epoch_s()))
        self.error: LivefuseError | None = None
        self.state: JobState = "connecting"
        self._config = config
        self._clock = clock
        self._secrets = (spec.source, *spec.targets)
        self._entrance = Entrance(job_id, self.mode, self.telemetry, self._secrets)
        self._ingest = self._create_ingest()
        self._intake: Intake | None = None
        lossless = self.mode == "every_frame"
        self._fanout = FanOut.create(
            spec.targets, config, clock, self._request_keyframe, lossless=lossless
        )
        self._create_pipeline = create_pipeline
        self._forget_networks = forget_networks
        self._loading: Loading | None = None
        self._crew = Crew(job_id, config.watchdog, self.telemetry, self._secrets, self._fail)
        self._report = Report(job_id, spec, self._entrance, self._fanout, self._crew.restarts)
        self._over, self._has_started = threading.Event(), threading.Event()
        self._stopping, self._finished = threading.Event(), threading.Event()

    # Control: any thread.

    @property
    def live(self) -> dict[str, LiveStream]:
        """The streams that players can take by HTTP: `flv` and `ts`."""
        return self._fanout.live

    def start(self) -> None:
        """Begin; returns at once."""
        start_stage("supervise", self._supervise, self._fail, self._secrets)

    def wait_started(self, timeout_s: float | None = None) -> bool:
        """Wait until the job runs or failed; False when neither within `timeout_s`.

        Raises:
            LivefuseError: it could not start.
        """
        if not self._has_started.wait(timeout_s):
            return False
        if self.error is not None:
            raise self.error
        return True

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until everything is closed; False when not within `timeout_s`."""
        return self._finished.wait(timeout_s)

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Close in order and wait for it; True when all is closed within `timeout_s`."""
        self._stopping.set()
        self._ingest.stop()
        self._wake_supervisor()
        return self._finished.wait(timeout_s)

    def statistics(self) -> Statistics:
        """Return the figures of now."""
        return self._report.collect(self._tell_state(), self._last_token())

    # Up and down: the supervise thread.

    def _supervise(self) -> None:
        try:
            loading = self._start_loading()
            patience_ms = self._config.pipeline.loading_patience_ms
            loading.wait_prepared(patience_ms if self.mode == "live" else None)
            self._start_ingest()
            self._entrance.has_media.wait()
            media = self._entrance.media
            if media is not None and self._is_wanted():
                self._open(media, loading)
                while not self._over.wait(_LOOK_S if self.mode == "live" else None):
                    self._crew.look()
        except LivefuseError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - told before the end is: else it looks like success
            text = redact_text(repr(error), self._secrets)
            self._fail(JobError(f"the stream cannot start ({text})", hint="please report it"))
        finally:
            self._close()

    def _open(self, media: MediaInfo, loading: Loading) -> None:
        """Bring up what stands behind the input and start the stages."""
        loading.set_size(media.width, media.height)
        is_live = self.mode == "live" and media.is_live
        loading.wait(self._config.pipeline.loading_patience_ms if is_live else None)
        if not self._is_wanted():
            return
        stages = self._entrance.stages = Stages(
            self._config, media, self.mode, self.telemetry, self._fanout, self.job_id
        )
        self._fanout.open(stages.streams)
        if self.mode == "live":
            self._crew.renewals = self._list_renewals(stages, is_live=media.is_live)
        self.state = "running"
        self._entrance.is_ready.set()
        self._has_started.set()
        self._spawn(stages, stages.list_loops(loading.pipeline, self.token))

    def _close(self) -> None:
        """Take everything down from the input on, each stage finishing what it has."""
        self.state = "stopping" if self.error is None else self.state
        if self._loading is not None:
            self._loading.set_size(0, 0)
        self._ingest.stop()
        self._entrance.is_ready.set()  # whoever waits for it must see that it is over
        stages = self._entrance.stages
        if stages is not None:
            stages.end_input()
            self._crew.join("pipeline", is_patient=self._is_patient)
            stages.end_treatment()
        self._crew.join(is_patient=self._is_patient)
        self._fanout.close(_FINISH_S if self._is_patient() else _JOIN_S)
        self.state = "stopped" if self.error is None else "failed"
        self._has_started.set()
        self._finished.set()

    # What is made anew when it hangs or has died: the supervise thread.

    def _list_renewals(self, stages: Stages, *, is_live: bool) -> dict[str, Renewal]:
        """Return how each part is made anew. A file that cannot be read on is at its end."""
        renewals = {
            "pipeline": Renewal(stages.abandon_treatment, lambda: self._renew_pipeline(stages)),
            "encode": Renewal(_do_nothing, lambda: self._spawn(stages, stages.renew_encode())),
            "audio": Renewal(_do_nothing, lambda: self._spawn(stages, stages.renew_audio())),
        }
        if is_live:
            renewals["decode"] = Renewal(self._abandon_ingest, self._renew_ingest)
        return renewals

    def _renew_pipeline(self, stages: Stages) -> None:
        """Put another pipeline in the place of the one that was abandoned; it loads meanwhile."""
        self._forget_networks()
        media = self._entrance.media
        loading = self._start_loading()
        if media is not None:
            loading.set_size(media.width, media.height)
        self._spawn(stages, stages.renew_treatment(loading.pipeline, self.token))

    def _abandon_ingest(self) -> None:
        if self._intake is not None:
            self._intake.retire()
        self._ingest.stop()
        self._entrance.note_state("lost")

    def _renew_ingest(self) -> None:
        self._ingest = self._create_ingest()
        self._start_ingest()
        if self._stopping.is_set():
            self._ingest.stop()

    def _create_ingest(self) -> Ingest:
        config, media = self._config.ingest, self._entrance.media
        if media is not None:
            # Outputs have been told a size, and the pool has it.
            config = msgspec.structs.replace(config, canvas=f"{media.width}x{media.height}")
        lossless = self.mode == "every_frame"
        return create_ingest(
            self.spec.source,
            config,
            self._clock,
            # A file goes at its own speed whenever somebody may be watching.
            paced=not (lossless and all(map(is_file_url, self.spec.targets))),
            every_frame=lossless,
        )

    def _start_ingest(self) -> None:
        limit_ns = self._config.watchdog.step_limit_ms * NS_PER_MS
        pulse = Pulse("decode", self._clock, limit_ns)
        intake = self._intake = Intake(self._entrance, pulse)
        ingest = self._ingest

        def decode() -> None:
            ingest.run(intake)
            if intake is self._intake:
                self._wake_supervisor()

        self._crew.spawn("decode", decode, pulse)

    def _start_loading(self) -> Loading:
        loading = Loading(self._create_pipeline(self.mode), self.token.get())
        self._loading = self._report.loading = loading
        self._crew.spawn("load", loading.run)
        return loading

    def _spawn(self, stages: Stages, loops: Loops) -> None:
        for name, run in loops.items():
            self._crew.spawn(name, run, stages.pulses.get(name))

    def _is_wanted(self) -> bool:
        return self.error is None and not self._stopping.is_set()

    def _is_patient(self) -> bool:
        """Say whether what came is to be finished, however long that takes."""
        return self.mode == "every_frame" and self.error is None and not self._stopping.is_set()

    def _fail(self, error: LivefuseError) -> None:
        if self.error is None:
            self.error = error
            self.state = "failed"
        self._wake_supervisor()

    def _wake_supervisor(self) -> None:
        self._entrance.has_media.set()
        self._over.set()

    def _request_keyframe(self) -> None:
        if self._entrance.stages is not None:
            self._entrance.stages.encoder.force_keyframe()

    def _tell_state(self) -> str:
        if self.state != "running":
            return self.state
        if self._loading is not None and not self._loading.is_ready:
            return "loading"
        return "degraded" if self.telemetry.is_degraded() else self._entrance.state

    def _last_token(self) -> Token:
        stages = self._entrance.stages
        token = stages.last_token if stages is not None else None
        return token or self.token.get()


def _do_nothing() -> None:
    """Nothing is in the way: the encoder before is refused once another works."""
