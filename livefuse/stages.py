"""What stands between an ingest and its outputs: ring -> pipeline -> ring -> one encode, and sound.

Three loops, each run by a thread of its own; `job.py` starts them and waits for them.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.clock import NS_PER_MS, NS_PER_S, Clock, SystemClock
from livefuse.errors import JobError, LivefuseError
from livefuse.frame import Frame, FramePool
from livefuse.load_control import LoadControl
from livefuse.machine import MachineWatch
from livefuse.packet import Packet, StreamsInfo
from livefuse.picture_out import PictureOut
from livefuse.pipeline.conveyor import MAX_PARTS, Conveyor
from livefuse.pipeline.state import Load
from livefuse.publish.audio import AudioTrack
from livefuse.publish.encode import VideoEncoder
from livefuse.redact import redact_text
from livefuse.ring import Ring, RingClosed, RingMode
from livefuse.sound_out import SoundOut
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.ingest.base import MediaInfo
    from livefuse.pipeline.state import Outcome
    from livefuse.pipeline.steps import Pipeline
    from livefuse.publish.fanout import FanOut
    from livefuse.telemetry import Telemetry
    from livefuse.token import Token, TokenCell

_AUDIO_PACKETS: Final = 256
_LIGHT_OPERATIONS: Final = frozenset({"detect", "blur"})


class Stages:
    """The rings, the frame pool and the loops of one job. Made when the input's shape is known."""

    def __init__(
        self,
        config: Config,
        media: MediaInfo,
        mode: RingMode,
        telemetry: Telemetry,
        fanout: FanOut,
        job_id: str,
    ) -> None:
        encode = config.encode
        if mode == "every_frame":
            encode = msgspec.structs.replace(encode, threads=encode.every_frame_threads)
        self.encoder = VideoEncoder(encode, media.width, media.height, media.fps, media.colour)
        self._frame_ms = 1000 / max(media.fps, 1.0)
        self.pictures = PictureOut(self.encoder, fanout, telemetry, config, job_id, self._frame_ms)
        self.audio_track = (
            AudioTrack(media.audio, config.audio) if media.audio is not None else None
        )
        self.streams = StreamsInfo(
            video=self.encoder.info,
            audio=self.audio_track.info if self.audio_track is not None else None,
        )
        self._parts = min(config.pipeline.execution_threads, MAX_PARTS)
        # One frame for each place in the two rings, two for each part of the pipeline (at work,
        # waiting for the next), one each for decoder and encoder, one that is held, one to spare.
        self._pool = FramePool(
            media.width, media.height, 2 * config.ring.capacity + 2 * self._parts + 3
        )
        self._arrived: Ring[Frame] = Ring(
            config.ring.capacity,
            mode=mode,
            on_drop=lambda frame: self._drop(frame, "pipeline_busy"),
            condition=telemetry.clock.create_condition(),
        )
        self._treated: Ring[Frame] = Ring(
            config.ring.capacity,
            mode=mode,
            on_drop=lambda frame: self._drop(frame, "encoder_busy"),
            condition=telemetry.clock.create_condition(),
        )
        self._sound: Ring[Packet] = Ring(
            _AUDIO_PACKETS,
            mode=mode,
            on_drop=lambda _packet: telemetry.count("audio_packets_dropped"),
            condition=telemetry.clock.create_condition(),
        )
        self._may_hold = mode == "live" and media.is_live
        self._telemetry = telemetry
        self._clock: Clock = telemetry.clock
        self._fanout = fanout
        self._log = get_logger("stages")
        self._told_ns = -NS_PER_S
        self._mode = mode
        self._config = config
        self.load: LoadControl | None = None
        self._machine: MachineWatch | None = None
        self.faces = 0
        self.last_token: Token | None = None

    # Fed by the decode thread.

    def acquire_frame(self) -> Frame | None:
        """Lend a frame to be filled, or None when all are in use."""
        return self._pool.acquire()

    def put_frame(self, frame: Frame) -> None:
        """Take a filled frame; waits for room in `every_frame` mode.

        Raises:
            RingClosed: the job is being stopped.
        """
        self._telemetry.frames_in.add()
        self._observe("decode", frame.arrival_ns)
        self._arrived.put(frame)

    def put_audio(self, packet: Packet) -> None:
        """Take sound.

        Raises:
            RingClosed: the job is being stopped.
        """
        self._sound.put(packet)

    def end_input(self) -> None:
        """Let each loop finish what it has and end."""
        self._arrived.close()
        self._sound.close()
        if self._machine is not None:
            self._machine.end()

    # The loops.

    def list_loops(self, pipeline: Pipeline, token: TokenCell) -> dict[str, Callable[[], None]]:
        """Return what the threads of these stages run, by name, in the order of a frame's way."""

        def take() -> tuple[Frame, Token, Load]:
            frame, load = self._take_frame()
            return frame, token.lease(self._clock.epoch_s()), load

        # A second thread only adds a hand-over where there is little to do.
        is_light = _LIGHT_OPERATIONS.issuperset(token.get().operations)
        conveyor = Conveyor(
            pipeline,
            1 if is_light else self._parts,
            take,
            self._note_outcome,
            self._clock.create_condition,
        )
        if self._mode == "live":
            self.load = LoadControl(
                self._config.governor,
                self._frame_ms,
                conveyor.part_of,
                self._telemetry,
                self._config.detect.every_n,
            )
        loops: dict[str, Callable[[], None]] = {}
        for index in range(conveyor.parts):
            name = "pipeline" if index == 0 else f"pipeline-{index + 1}"
            loops[name] = partial(self._run_part, conveyor, index)
        loops |= {"encode": partial(self._run_encoder, pipeline), "audio": self._run_sound}
        governor = self._config.governor
        # A clock that is not real (a replay) has no machine that could press it.
        is_real = isinstance(self._clock, SystemClock)
        if self.load is not None and is_real and governor.enabled and governor.watch_machine:
            tell = partial(self.load.note_pressure, "machine")
            device = self._config.models.device
            self._machine = MachineWatch(governor, self._clock, tell, device=device)
            loops["machine"] = self._machine.run
        return loops

    def _take_frame(self) -> tuple[Frame, Load]:
        """Wait for the next frame that is to be treated, and what is to be spared on it."""
        while True:
            frame = self._arrived.take()
            self._observe("queue", frame.arrival_ns)
            if self.load is None:
                return frame, Load()
            load = self.load.take((self._clock.now_ns() - frame.arrival_ns) / NS_PER_MS)
            if load is not None:
                return frame, load
            self._drop(frame, "half_rate")

    def _run_part(self, conveyor: Conveyor, index: int) -> None:
        """Edit frames in place, oldest first, until the input has ended."""
        try:
            conveyor.run_part(index)
        finally:
            if index == conveyor.parts - 1:
                self._treated.close()
                conveyor.close()

    def _note_outcome(self, frame: Frame, outcome: Outcome) -> None:
        for step, took_ms in outcome.steps:
            self._telemetry.observe_step(step, took_ms)
        if self.load is not None:
            self.load.note(self._clock.now_ns(), outcome)
        self.faces = len(outcome.faces)
        self.last_token = outcome.token
        self._telemetry.journal.note_outcome(frame, outcome)
        self._telemetry.note_outcome(failed=bool(outcome.error))
        if outcome.covered_whole:
            self._telemetry.count(f"covered_{outcome.reason}")
        if outcome.error:
            self._tell_failure(outcome)
        self._treated.put(frame)

    def _run_encoder(self, pipeline: Pipeline) -> None:
        def may_show() -> bool:
            return self.last_token is None or pipeline.may_show(self.last_token)

        self.pictures.run(self._treated, self._pool, may_hold=self._may_hold, may_show=may_show)

    def _run_sound(self) -> None:
        if self.audio_track is None:
            return
        out = SoundOut(self.audio_track, self._fanout, self._telemetry, self._config)
        is_holding = (lambda: self.pictures.is_holding) if self._may_hold else None
        out.run(self._sound, is_holding=is_holding)

    def _tell_failure(self, outcome: Outcome) -> None:
        """Log why a frame may not be seen, at most once a second: the counters have them all."""
        if outcome.token.parameters.on_failure == "alert":
            self._telemetry.count("alerts")
        now_ns = self._clock.now_ns()
        if now_ns - self._told_ns >= NS_PER_S:
            self._told_ns = now_ns
            fate = "the frame is covered" if outcome.covered_whole else "the frame goes on as it is"
            what = "no consent" if outcome.reason == "no_consent" else "a step failed"
            self._log.warning(f"{what}, {fate}", cause=outcome.error)

    def _drop(self, frame: Frame, reason: str) -> None:
        self._telemetry.count(f"dropped_{reason}")
        self._telemetry.journal.note_drop(frame, reason)
        self._pool.release(frame)

    def _observe(self, step: str, since_ns: int) -> None:
        self._telemetry.observe_step(step, (self._clock.now_ns() - since_ns) / NS_PER_MS)


def describe_media(media: MediaInfo, mode: RingMode, stages: Stages | None) -> dict[str, Any]:
    """Return what a job's input is and how it is coded, as status shows it."""
    return {
        "size": f"{media.width}x{media.height}",
        "fps": round(media.fps, 3),
        "decoder": media.decoder,
        "encoder": stages.encoder.name if stages is not None else "",
        "audio": media.audio.codec if media.audio is not None else "none",
        "mode": mode,
    }


def start_stage(
    name: str,
    run: Callable[[], None],
    fail: Callable[[LivefuseError], None],
    secrets: tuple[str, ...],
) -> threading.Thread:
    """Run `run` in a daemon thread; whatever it dies of is told to `fail` in one sentence."""

    def guard() -> None:
        try:
            run()
        except RingClosed:
            pass
        except LivefuseError as error:
            fail(error)
        except Exception as error:  # noqa: BLE001 - a stage must not die unseen
            text = redact_text(f"{type(error).__name__}: {error}", secrets)
            get_logger("stages").debug("stage failed", stage=name, exc_info=True)
            fail(JobError(f"the {name} stage failed ({text})", hint="please report this fault"))

    thread = threading.Thread(target=guard, name=f"livefuse-{name}", daemon=True)
    thread.start()
    return thread
