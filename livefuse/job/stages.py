"""Between an ingest and its outputs: ring -> treatment -> ring -> one encode, and sound.

A frame's way through a job:

    put_frame      the decode thread puts a filled frame of the pool into the first ring
    treatment.py   the pipeline's threads edit it in place and put it into the second ring
    picture_out.py the encode thread marks it, encodes it once for all outputs, holds it
    sound_out.py   the audio thread brings the sound beside it

Each loop is run by a thread of its own; `job.py` starts them and waits for them. What hangs or
dies is made anew (`renew_...`); pool, second ring, place on the time line and outputs stay.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.clock import NS_PER_MS, Clock, SystemClock
from livefuse.frame import Frame, FramePool
from livefuse.job.load_control import LoadControl
from livefuse.job.picture_out import PictureOut
from livefuse.job.sound_out import SoundOut
from livefuse.job.treatment import Setting, Treatment, count_parts
from livefuse.job.watchdog import Pulse
from livefuse.machine import MachineWatch
from livefuse.packet import Packet, StreamsInfo
from livefuse.pipeline.conveyor import assign_parts
from livefuse.publish.audio import AudioTrack
from livefuse.publish.encode import VideoEncoder
from livefuse.ring import Ring, RingClosed, RingMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config, EncodeConfig
    from livefuse.ingest.base import MediaInfo
    from livefuse.pipeline.steps import Pipeline
    from livefuse.publish.fanout import FanOut
    from livefuse.safety.mark_keys import JobMarks
    from livefuse.telemetry import Telemetry
    from livefuse.token import Token, TokenCell

_AUDIO_PACKETS: Final = 256

Loops = dict[str, "Callable[[], None]"]


class Stages:
    """The rings, the frame pool and the loops of one job. Made when the input's shape is known."""

    def __init__(
        self,
        config: Config,
        media: MediaInfo,
        mode: RingMode,
        telemetry: Telemetry,
        fanout: FanOut,
        marks: JobMarks,
    ) -> None:
        self._config, self._media, self._mode = config, media, mode
        self._telemetry = telemetry
        self._clock: Clock = telemetry.clock
        self._frame_ms = 1000 / max(media.fps, 1.0)
        encoder = self._create_encoder(_choose_encode(config.encode, mode))
        self.pictures = PictureOut(encoder, fanout, telemetry, config, marks, self._frame_ms)
        track = AudioTrack(media.audio, config.audio) if media.audio is not None else None
        self._sound_out = SoundOut(track, fanout, telemetry, config) if track is not None else None
        self.streams = StreamsInfo(
            video=encoder.info, audio=track.info if track is not None else None
        )
        parts = count_parts(config)
        # One for each place in the two rings, two for each part of the pipeline (at work, waiting
        # for the next), one each for decoder and encoder, one that is held, one to spare.
        self._pool = FramePool(media.width, media.height, 2 * config.ring.capacity + 2 * parts + 3)
        self._arrived = self._create_ring("pipeline_busy")
        self._treated = self._create_ring("encoder_busy")
        self._sound: Ring[Packet] = Ring(
            _AUDIO_PACKETS,
            mode=mode,
            on_drop=lambda _packet: telemetry.count("audio_packets_dropped"),
            condition=self._clock.create_condition(),
        )
        self._may_hold = mode == "live" and media.is_live
        if self._may_hold and (sound_out := self._sound_out) is not None:
            self.pictures.when_shown = partial(sound_out.follow, self.pictures)
        self._has_ended = False
        self._treatment: Treatment | None = None
        self._token: TokenCell | None = None
        self._machine: MachineWatch | None = None
        self.load: LoadControl | None = None
        self.pulses: dict[str, Pulse] = {}

    @property
    def encoder(self) -> VideoEncoder:
        """The one that works now."""
        return self.pictures.encoder

    @property
    def size_px(self) -> tuple[int, int]:
        """Width and height of all frames."""
        return self._media.width, self._media.height

    @property
    def faces(self) -> int:
        """How many faces were found in the last frame."""
        return self._treatment.faces if self._treatment is not None else 0

    @property
    def last_token(self) -> Token | None:
        """The last frame's token."""
        return self._treatment.last_token if self._treatment is not None else None

    # Fed by the decode thread.

    def acquire_frame(self) -> Frame | None:
        """Lend a frame to be filled, or None when all are in use."""
        return self._pool.acquire()

    def release_frame(self, frame: Frame, reason: str, *, is_held: bool = False) -> None:
        """Take back a frame that is not shown, counted by `reason`; replace one that `is_held`."""
        self._telemetry.count(f"dropped_{reason}")
        self._telemetry.journal.note_drop(frame, reason)
        take_back = self._pool.replace if is_held else self._pool.release
        take_back(frame)

    def put_frame(self, frame: Frame) -> None:
        """Take a filled frame; waits for room in `every_frame` mode.

        Raises:
            RingClosed: the job is being stopped.
        """
        self._telemetry.frames_in.add()
        since_ns = max(frame.arrival_ns, frame.ready_ns)
        self._telemetry.observe_step("decode", (self._clock.now_ns() - since_ns) / NS_PER_MS)
        try:
            self._arrived.put(frame)
        except RingClosed:
            if self._has_ended:
                raise
            self.release_frame(frame, "restarting")

    def put_audio(self, packet: Packet) -> None:
        """Take sound.

        Raises:
            RingClosed: the job is being stopped.
        """
        self._sound.put(packet)

    def end_input(self) -> None:
        """Let each loop finish what it has and end."""
        self._has_ended = True
        self._arrived.close()
        self._sound.close()
        if self._machine is not None:
            self._machine.end()

    def end_treatment(self) -> None:
        """Let the encoder finish, whatever became of the pipeline's threads."""
        self._treated.close()
        if self._treatment is not None:
            self._treatment.close()

    def discard_pictures(self) -> None:
        """Let go of the pictures of a job that is over; its figures stay."""
        self._pool.discard()
        self.encoder.close()

    # The loops.

    def list_loops(self, pipeline: Pipeline, token: TokenCell) -> Loops:
        """Return what the threads of these stages run, by name, in the order of a frame's way."""
        config = self._config
        if self._mode == "live":
            parts = assign_parts(count_parts(config))
            self.load = LoadControl(
                config.governor, self._frame_ms, parts, self._telemetry, config.detect.every_n
            )
        loops = self._start_treatment(pipeline, token)
        loops |= self._list_encode() | self._list_audio()
        # A clock that is not real (a replay) has no machine that could press it.
        is_real = isinstance(self._clock, SystemClock)
        governor = config.governor
        if self.load is not None and is_real and governor.enabled and governor.watch_machine:
            tell = partial(self.load.note_pressure, "machine")
            self._machine = MachineWatch(governor, self._clock, tell, device=config.models.device)
            loops["machine"] = self._machine.run
        return loops

    # What is made anew when it hangs or has died. One thread (the job's supervisor) calls these.

    def abandon_treatment(self) -> None:
        """Show nothing more of the pipeline that works now; frames are dropped until another."""
        if self._treatment is not None:
            self._treatment.abandon()

    def renew_treatment(self, pipeline: Pipeline, token: TokenCell) -> Loops:
        """Return the loops of a new pipeline in the place of the one that was abandoned."""
        if not self._has_ended:
            self._arrived = self._create_ring("pipeline_busy")
        return self._start_treatment(pipeline, token)

    def renew_encode(self) -> Loops:
        """Return the loop of a new encoder: it begins with a keyframe, stamps go on.

        Raises:
            LivefuseError: there is none to be had.
        """
        # The same one as before, of the same size: outputs were told its parameter sets.
        config = msgspec.structs.replace(self._config.encode, encoder=self.encoder.name)
        encoder = self._create_encoder(_choose_encode(config, self._mode))
        if encoder.info != self.streams.video:
            self._telemetry.count("parameter_sets_changed")
        frame = self.pictures.renew(encoder)
        if frame is not None:
            self.release_frame(frame, "encoder_failed", is_held=True)
        return self._list_encode()

    def renew_audio(self) -> Loops:
        """Return the loop of a new track of the same sound.

        Raises:
            PublishError: its codec cannot be decoded any more.
        """
        audio = self._media.audio
        if self._sound_out is not None and audio is not None:
            self._sound_out.renew(AudioTrack(audio, self._config.audio))
        return self._list_audio()

    def _start_treatment(self, pipeline: Pipeline, token: TokenCell) -> Loops:
        self._token = token
        setting = Setting(self._config, self._telemetry, self._pool, self._treated, self.load)
        treatment = Treatment(setting, self._arrived, pipeline, token)
        treatment.last_token = self.last_token  # of the picture that is held meanwhile
        self._treatment = treatment
        self.pulses |= {pulse.name: pulse for pulse in treatment.pulses}
        return treatment.list_loops()

    def _list_encode(self) -> Loops:
        return {"encode": partial(self._run_encoder, self._create_pulse("encode"))}

    def _list_audio(self) -> Loops:
        return {"audio": partial(self._run_sound, self._create_pulse("audio"))}

    def _run_encoder(self, pulse: Pulse) -> None:
        try:
            self.pictures.run(
                self._treated,
                self._pool,
                may_hold=self._may_hold,
                may_show=self._may_show,
                pulse=pulse,
            )
        except Exception:
            if self._mode == "every_frame":
                self._treated.close(discard=True)  # nobody takes any more, so nobody may wait
            raise

    def _may_show(self) -> bool:
        """Say whether the last picture may still be seen."""
        treatment, token = self._treatment, self._token
        if token is not None and token.get().parameters.cover_all:
            return False  # asked for since: no frame comes that could bring the wish along
        return treatment is None or treatment.may_show()

    def describe_sound(self) -> dict[str, Any]:
        """Return what status shows of the sound, nothing when there is none. Any thread."""
        picture_ms = self._telemetry.latency.recent().p50_ms
        return self._sound_out.describe(picture_ms) if self._sound_out is not None else {}

    def _run_sound(self, pulse: Pulse) -> None:
        if self._sound_out is not None:
            self._sound_out.run(self._sound, pulse=pulse)

    def _create_pulse(self, name: str) -> Pulse:
        limit_ns = self._config.watchdog.encode_limit_ms * NS_PER_MS
        pulse = self.pulses[name] = Pulse(name, self._clock, limit_ns)
        return pulse

    def _create_encoder(self, config: EncodeConfig) -> VideoEncoder:
        media = self._media
        return VideoEncoder(config, media.width, media.height, media.fps, media.colour)

    def _create_ring(self, busy: str) -> Ring[Frame]:
        return Ring(
            self._config.ring.capacity,
            mode=self._mode,
            on_drop=lambda frame: self.release_frame(frame, busy),
            condition=self._clock.create_condition(),
        )


def _choose_encode(config: EncodeConfig, mode: RingMode) -> EncodeConfig:
    if mode == "every_frame":
        return msgspec.structs.replace(config, threads=config.every_frame_threads)
    return config
