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

from livefuse.errors import JobError, JobMemoryError, LivefuseError
from livefuse.job.builder import Builder
from livefuse.job.crew import Crew, start_stage, wrap_error
from livefuse.job.intake import Entrance
from livefuse.job.memory import MemoryCap, trim_heap
from livefuse.job.outputs import create_outputs
from livefuse.job.report import Report
from livefuse.job.stages import Stages
from livefuse.machine import read_rss_bytes
from livefuse.redact import redact_text
from livefuse.safety.mark_keys import JobMarks, MarkKeys, make_mark_keys
from livefuse.telemetry import Statistics, Telemetry, log_for
from livefuse.token import Token, TokenCell

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from livefuse.clock import Clock
    from livefuse.config import Config
    from livefuse.ingest.base import MediaInfo
    from livefuse.ingest.whip import WhipIngest
    from livefuse.job.memory import Verdict as MemoryVerdict
    from livefuse.job.spec import JobSpec
    from livefuse.pipeline.steps import Pipeline
    from livefuse.publish.base import OutputStatus
    from livefuse.publish.flv import LiveStream
    from livefuse.publish.whep import WhepOutput
    from livefuse.ring import RingMode

JobState = Literal["connecting", "running", "stopping", "stopped", "failed"]
_JOIN_S, _FINISH_S = 2.0, 60.0  # a stop is short; a file that is to be whole gets its time


class Job:
    """A running stream. `start` returns at once; `wait_started` tells how it went.

    The constructor opens nothing but checks all that it can.

    Raises:
        ConfigError: a URL, an operation or a value cannot be used.
        TokenError: the operations are unknown or out of order.
        PublishError: a file cannot be written.
    """

    def __init__(  # noqa: PLR0913 - the last two are what its worker lends it
        self,
        job_id: str,
        spec: JobSpec,
        config: Config,
        clock: Clock,
        create_pipeline: Callable[[RingMode], Pipeline],
        forget_networks: Callable[[], None] = lambda: None,
        *,
        keys: MarkKeys | None = None,
    ) -> None:
        """`forget_networks`: the next pipeline loads them anew; `keys`: by default new ones."""
        self.job_id = job_id
        self.spec = spec
        self.mode = spec.choose_mode()
        self.telemetry = Telemetry(clock)
        self.token = TokenCell(spec.create_token(clock.epoch_s()))
        self.error: LivefuseError | None = None
        self.state: JobState = "connecting"
        self._config = config
        self._clock = clock
        self._marks = JobMarks(job_id, keys or make_mark_keys())
        self._secrets = (spec.source, *spec.targets)
        self._entrance = Entrance(job_id, self.mode, self.telemetry, self._secrets)
        self._crew = Crew(job_id, config.watchdog, self.telemetry, self._secrets, self._fail)
        self._builder = Builder(
            spec, config, self.token, self._entrance, self._crew, create_pipeline
        )
        self._builder.forget_networks = forget_networks
        self._memory = MemoryCap(config.pipeline.memory_limit_mb << 20, read_rss_bytes)
        self._fanout = create_outputs(spec, config, self.telemetry, self._entrance.request_keyframe)
        self.report = Report(spec, config, self._entrance, self._builder, self._fanout, self._crew)
        self._over, self._has_started = threading.Event(), threading.Event()
        self._stopping, self._finished = threading.Event(), threading.Event()

    # Control: any thread.

    @property
    def live(self) -> dict[str, LiveStream]:
        """The streams that players can take by HTTP: `flv` and `ts`."""
        return self._fanout.live

    def start(self) -> None:
        """Begin; returns at once."""
        with log_for(self.job_id):
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
        self._builder.stop_ingest()
        self._wake_supervisor()
        return self._finished.wait(timeout_s)

    def statistics(self) -> Statistics:
        """Return the figures of now."""
        return self.report.collect(self.state, self.error, self.token.get())

    def write_recording(self, path: Path | None = None) -> Path:
        """Write what is kept of the input, as `Builder.write_recording`."""
        return self._builder.write_recording(path)

    def list_outputs(self) -> list[OutputStatus]:
        """Return the state of each output, in the order in which they came."""
        return [status for status in self._fanout.statuses() if status.id]

    def add_output(self, url: str) -> OutputStatus:
        """Send to `url` too, from the next keyframe on; return its state.

        Raises:
            ConfigError, PublishError: it cannot be understood, the file cannot be written.
            JobError: the job is over, or sends there already.
        """
        return self._fanout.add(url)

    def remove_output(self, which: str) -> None:
        """Send no more to the output of that id or URL; the others do not notice.

        Raises:
            JobNotFoundError: there is no such output.
        """
        self._fanout.remove(which)

    def take_snapshot(self, timeout_s: float) -> bytes | None:
        """Return the next picture that is shown, as JPEG; None when there is none in time."""
        return self._fanout.snapshot.take(timeout_s)

    def prepare_changes(self, token: Token) -> None:
        """Load what `token` needs and there was none of so far, beside the stream.

        Raises:
            LivefuseError: it cannot be had.
        """
        if self._builder.loading is not None:
            self._builder.loading.prepare_changes(token)

    def get_peers(self, kind: Literal["whip", "whep"]) -> WhipIngest | WhepOutput:
        """Return where browsers send to this job (whip) or watch it (whep).

        Raises:
            JobError: its source is no browser, or it is for files.
        """
        peers = self._builder.whip if kind == "whip" else self._fanout.whep
        if peers is None:
            what = "takes no camera of a browser" if kind == "whip" else "cannot be watched live"
            hint = "its source would be whip:" if kind == "whip" else "it goes to files only"
            raise JobError(f"the job {self.job_id} {what}", hint=hint)
        return peers

    # Up and down: the supervise thread.

    def _supervise(self) -> None:
        try:
            patience_ms = self._config.pipeline.loading_patience_ms if self.mode == "live" else None
            # Not kept here: a pipeline that is thrown away must not live on in this frame.
            self._builder.start_loading().wait_prepared(patience_ms)
            self._builder.start_ingest(self._wake_supervisor)
            self._entrance.has_media.wait()
            media = self._entrance.media
            if media is not None and self._is_wanted():
                self._open(media)
                while not self._crew.wait(self._over):
                    self._look()
        except LivefuseError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - told before the end is: else it looks like success
            text = redact_text(repr(error), self._secrets)
            self._fail(JobError(f"the stream cannot start ({text})", hint="please report it"))
        finally:
            try:
                self._close()
            except Exception as error:  # noqa: BLE001 - whoever waits for the end must see it
                self._fail(wrap_error("supervise", error, self._secrets))
            self._has_started.set()
            self._finished.set()

    def _open(self, media: MediaInfo) -> None:
        """Bring up what stands behind the input and start the stages."""
        loading = self._builder.loading
        if loading is None:
            return
        loading.set_size(media.width, media.height)
        is_live = self.mode == "live" and media.is_live
        loading.wait(self._config.pipeline.loading_patience_ms if is_live else None)
        if not self._is_wanted():
            return
        stages = self._entrance.stages = Stages(
            self._config, media, self.mode, self.telemetry, self._fanout, self._marks
        )
        self._fanout.open(stages.streams)
        if self.mode == "live":
            self._crew.renewals = self._builder.list_renewals(
                stages, self._wake_supervisor, is_live=media.is_live
            )
        self.state = "running"
        self._entrance.is_ready.set()
        self._has_started.set()
        self._builder.start_loops(stages, stages.list_loops(loading.pipeline, self.token))

    def _look(self) -> None:
        """See how all is, about five times a second, and have made anew what is broken."""
        if self._crew.renewals:
            self._crew.look()
        verdict = self._memory.look(self._clock.now_ns())
        if verdict is not None:
            self._heed_memory(verdict)
        self.report.tell_health(self.state, self.error)

    def _heed_memory(self, verdict: MemoryVerdict) -> None:
        memory, stages = self._memory, self._entrance.stages
        if stages is not None and stages.load is not None:
            pressures = () if verdict == "enough" else ("memory_constrained",)
            stages.load.note_pressure("memory_limit", pressures)
        if verdict in ("over", "lost"):
            held, limit = memory.held_bytes >> 20, memory.limit_bytes >> 20
            kind = JobMemoryError if self._crew.renewals else JobError  # a file would begin anew
            error = kind(
                f"the process holds {held} MB of memory, more than the {limit} MB it may",
                hint="raise pipeline.memory_limit_mb, or ask for less",
            )
            if verdict == "over" and self._crew.renewals:
                self._crew.renew("pipeline", "memory", error)
            else:
                self._fail(error)
        if memory.is_recovering:
            trim_heap()

    def _close(self) -> None:
        """Take everything down from the input on, each stage finishing what it has."""
        self.state = "stopping" if self.error is None else self.state
        if self._builder.loading is not None:
            self._builder.loading.set_size(0, 0)
        self._builder.stop_ingest()
        self._entrance.is_ready.set()  # whoever waits for it must see that it is over
        stages = self._entrance.stages
        if stages is not None:
            stages.end_input()
            self._crew.wait_for("pipeline", is_patient=self._is_patient)
            stages.end_treatment()
        self._crew.join(is_patient=self._is_patient)
        self._fanout.close(_FINISH_S if self._is_patient() else _JOIN_S)
        self._builder.end("failed" if self.error is not None else "")
        self.state = "stopped" if self.error is None else "failed"
        if self.error is not None and stages is not None:
            self.report.tell_health(self.state, self.error)  # whoever started it knows already

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
        self._crew.wake()
