"""One stream's life on one page: ingest -> ring -> pipeline -> ring -> encode -> outputs.

Threads of a job, all daemon, all ended by `stop`:
    decode     runs the ingest, which fills frames of the pool and puts them into the first ring
    pipeline   takes the oldest frame, has it edited in place, puts it into the second ring
    encode     encodes it once for every output and gives the frame back to the pool
    audio      relays or transcodes sound to the same outputs; it never meets the pipeline
    supervise  brings these up and takes them down, in order
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

import msgspec

from livefuse.clock import NS_PER_S, Clock
from livefuse.errors import JobError, LivefuseError
from livefuse.ingest import create_ingest
from livefuse.loading import Loading
from livefuse.publish import is_file_url
from livefuse.publish.fanout import FanOut
from livefuse.redact import redact_text, redact_url
from livefuse.stages import Stages, describe_media, start_stage
from livefuse.telemetry import Statistics, Telemetry, get_logger
from livefuse.token import Token, TokenCell

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.frame import Frame
    from livefuse.ingest.base import InputState, MediaInfo
    from livefuse.packet import Packet
    from livefuse.pipeline.steps import Pipeline
    from livefuse.publish.flv import LiveStream
    from livefuse.ring import RingMode
    from livefuse.spec import JobSpec

JobState = Literal["connecting", "running", "stopping", "stopped", "failed"]
_JOIN_S, _FINISH_S = 2.0, 60.0  # a stop is short; a file that is to be whole gets its time


class Job:
    """A running stream. `start` returns at once; `wait_started` tells how it went.

    It is its ingest's `IngestSink`. The constructor opens nothing but checks all that it can.

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
    ) -> None:
        self.job_id = job_id
        self.spec = spec
        self.mode = spec.choose_mode()
        self.telemetry = Telemetry(clock)
        self.token = TokenCell(spec.create_token(clock.epoch_s()))
        self.error: LivefuseError | None = None
        self.state: JobState = "connecting"
        self.input_state: InputState = "connecting"
        self._config = config
        self._clock = clock
        self._secrets = (spec.source, *spec.targets)
        self._log = get_logger("job")
        lossless = self.mode == "every_frame"
        self._ingest = create_ingest(
            spec.source,
            config.ingest,
            clock,
            # A file goes at its own speed whenever somebody may be watching.
            paced=not (lossless and all(map(is_file_url, spec.targets))),
            every_frame=lossless,
        )
        self._fanout = FanOut.create(
            spec.targets, config, clock, self._request_keyframe, lossless=lossless
        )
        self._create_pipeline = create_pipeline
        self._media: MediaInfo | None = None
        self._loading: Loading | None = None
        self._stages: Stages | None = None
        self._frames_in = 0
        self._has_media, self._decode_ended = threading.Event(), threading.Event()
        self._is_ready, self._has_started = threading.Event(), threading.Event()
        self._stopping, self._finished = threading.Event(), threading.Event()

    # Control: any thread.

    @property
    def live(self) -> dict[str, LiveStream]:
        """The streams that players can take by HTTP: `flv` and `ts`."""
        return self._fanout.live

    def start(self) -> None:
        """Begin; returns at once."""
        self._spawn("supervise", self._supervise)

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
        telemetry, media = self.telemetry, self._media
        networks = self._loading.describe_networks() if self._loading is not None else {}
        return Statistics(
            job=self.job_id,
            state=self._tell_state(),
            source=redact_url(self.spec.source),
            seconds=round((self._clock.now_ns() - telemetry.started_ns) / NS_PER_S, 3),
            frames_in=self._frames_in,
            frames_out=telemetry.latency.count,
            fps_in=telemetry.frames_in.per_s(),
            fps_out=telemetry.frames_out.per_s(),
            dropped=telemetry.dropped(),
            counts=telemetry.counts(),
            faces=self._stages.faces if self._stages is not None else 0,
            latency=telemetry.latency.overall(),
            latency_recent=telemetry.latency.recent(),
            steps={name: step.overall() for name, step in telemetry.steps.copy().items()},
            bottleneck=telemetry.bottleneck(),
            outputs=[msgspec.to_builtins(status) for status in self._fanout.statuses()],
            notes=[*(media.notes if media is not None else ()), *networks.get("notes", ())],
            media=describe_media(media, self.mode, self._stages) if media is not None else {},
            token=msgspec.to_builtins(self._last_token()),
            rung=load.rung_name if (load := self._stages and self._stages.load) else "",
            networks=networks,
        )

    # IngestSink: called from the decode thread.

    def on_media(self, media: MediaInfo) -> None:
        """Take the description of the input."""
        self._media = media
        self._has_media.set()

    def acquire_frame(self) -> Frame | None:
        """Lend a frame. A live input is not made to wait for the outputs, a file is."""
        self._wait_if_file()
        if self._stages is None or not self._is_ready.is_set():
            self.telemetry.count("skipped_while_starting")
            return None
        return self._stages.acquire_frame()

    def on_frame(self, frame: Frame) -> None:
        """Take a filled frame."""
        if self._stages is not None:
            self._frames_in += 1
            self._stages.put_frame(frame)

    def on_audio(self, packet: Packet) -> None:
        """Take sound."""
        self._wait_if_file()
        if self._stages is not None and self._is_ready.is_set():
            self._stages.put_audio(packet)

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Note what the input does, and say it once."""
        if state != self.input_state:
            cause = redact_text(str(error or ""), self._secrets)
            log = self._log.info if state in ("connecting", "live", "ended") else self._log.warning
            log("input", job=self.job_id, state=state, cause=cause)
        self.input_state = state

    def _wait_if_file(self) -> None:
        if self.mode == "every_frame" or (self._media and not self._media.is_live):
            self._is_ready.wait()

    def count(self, event: str, amount: int = 1) -> None:
        """Count an event."""
        self.telemetry.count(event, amount)

    # Up and down: the supervise thread.
    def _supervise(self) -> None:
        threads: list[threading.Thread] = []
        try:
            loading = self._loading = Loading(self._create_pipeline(self.mode), self.token.get())
            self._spawn("load", loading.run)
            patience_ms = self._config.pipeline.loading_patience_ms
            loading.wait_prepared(patience_ms if self.mode == "live" else None)
            threads.append(self._spawn("decode", self._decode))
            self._has_media.wait()
            if self._media is not None and self._is_wanted():
                threads += self._open(self._media, loading)
                self._decode_ended.wait()
        except LivefuseError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - told before the end is: else it looks like success
            text = redact_text(repr(error), self._secrets)
            self._fail(JobError(f"the stream cannot start ({text})", hint="please report it"))
        finally:
            self._close(threads)

    def _decode(self) -> None:
        try:
            self._ingest.run(self)
        finally:
            self._wake_supervisor()

    def _open(self, media: MediaInfo, loading: Loading) -> list[threading.Thread]:
        """Bring up what stands behind the input and start the stages."""
        loading.set_size(media.width, media.height)
        is_live = self.mode == "live" and media.is_live
        loading.wait(self._config.pipeline.loading_patience_ms if is_live else None)
        if not self._is_wanted():
            return []
        stages = self._stages = Stages(
            self._config, media, self.mode, self.telemetry, self._fanout, self.job_id
        )
        self._fanout.open(stages.streams)
        self.state = "running"
        self._is_ready.set()
        self._has_started.set()
        loops = stages.list_loops(loading.pipeline, self.token)
        return [self._spawn(name, run) for name, run in loops.items()]

    def _close(self, threads: list[threading.Thread]) -> None:
        """Take everything down from the input on, each stage finishing what it has."""
        self.state = "stopping" if self.error is None else self.state
        if self._loading is not None:
            self._loading.set_size(0, 0)
        self._ingest.stop()
        self._is_ready.set()  # whoever waits for it must see that it is over
        if self._stages is not None:
            self._stages.end_input()
        for thread in (*threads[1:], *threads[:1]):
            while thread.is_alive() and self._is_patient():
                thread.join(_JOIN_S)  # in turns: a fault elsewhere may leave it waiting for ever
            thread.join(_JOIN_S)
            if thread.is_alive():
                self.telemetry.count("abandoned_threads")
                self._log.warning("thread abandoned", job=self.job_id, thread=thread.name)
        self._fanout.close(_FINISH_S if self._is_patient() else _JOIN_S)
        self.state = "stopped" if self.error is None else "failed"
        self._has_started.set()
        self._finished.set()

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
        self._has_media.set()
        self._decode_ended.set()

    def _spawn(self, name: str, run: Callable[[], None]) -> threading.Thread:
        return start_stage(name, run, self._fail, self._secrets)

    def _request_keyframe(self) -> None:
        if self._stages is not None:
            self._stages.encoder.force_keyframe()

    def _tell_state(self) -> str:
        if self.state != "running":
            return self.state
        if self._loading is not None and not self._loading.is_ready:
            return "loading"
        return "degraded" if self.telemetry.is_degraded() else self.input_state

    def _last_token(self) -> Token:
        token = self._stages.last_token if self._stages is not None else None
        return token or self.token.get()
