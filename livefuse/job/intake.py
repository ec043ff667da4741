"""Where an ingest gives its frames and sound: the job's side of `IngestSink`.

`Entrance` is the job's, `Intake` belongs to one ingest. When an ingest hangs or dies another takes
its place with an intake of its own: its time line, which begins anew near 0, is moved to where the
job is by then, and what the one before still gives is refused.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import JobError
from livefuse.frame import TIME_BASE_HZ
from livefuse.redact import redact_text
from livefuse.ring import RingClosed
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import InputState, MediaInfo
    from livefuse.job.stages import Stages
    from livefuse.job.watchdog import Pulse
    from livefuse.packet import Packet
    from livefuse.ring import RingMode
    from livefuse.telemetry import Telemetry


class Entrance:
    """A job's input, whichever ingest it comes from: what it is, what it does, where it stands."""

    def __init__(
        self, job_id: str, mode: RingMode, telemetry: Telemetry, secrets: tuple[str, ...]
    ) -> None:
        self.media: MediaInfo | None = None
        self.stages: Stages | None = None
        self.state: InputState = "connecting"
        self.frames = 0
        self.has_media = threading.Event()
        self.is_ready = threading.Event()  # also set when all is over: nobody may wait any more
        self.telemetry = telemetry
        self.clock = telemetry.clock
        self.job_id = job_id
        self.mode = mode
        self._secrets = secrets
        self._log = get_logger("job")
        self._last: tuple[int, int] | None = None  # PTS of the last frame, when it came (monotonic)

    @property
    def is_waited_for(self) -> bool:
        """Whether the input is made to wait for the outputs: a file is, a live one is not."""
        return self.mode == "every_frame" or (self.media is not None and not self.media.is_live)

    def get_age_ms(self) -> int | None:
        """Return how old the last frame is; None: there was none yet."""
        last = self._last
        return None if last is None else max(self.clock.now_ns() - last[1], 0) // NS_PER_MS

    def find_place(self) -> int:
        """Return the place on the job's line (1/90000 s) where time is now."""
        last = self._last
        if last is None:
            return 0
        return last[0] + (self.clock.now_ns() - last[1]) * TIME_BASE_HZ // NS_PER_S

    def request_keyframe(self) -> None:
        """Have the next picture begin anew for whoever comes in between. Any thread."""
        if self.stages is not None:
            self.stages.encoder.force_keyframe()

    def note_frame(self, pts: int) -> None:
        """Take note of a frame that has come."""
        self.frames += 1
        self._last = (pts, self.clock.now_ns())

    def note_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Note what the input does, and say it once."""
        if state != self.state:
            cause = redact_text(str(error or ""), self._secrets)
            log = self._log.info if state in ("connecting", "live", "ended") else self._log.warning
            log("input", job=self.job_id, state=state, cause=cause)
        self.state = state


class Intake:
    """An `IngestSink` for one ingest. Called from the ingest's thread, `retire` from any.

    An ingest fills one frame at a time: what it could not fill is lent again.
    """

    def __init__(self, entrance: Entrance, pulse: Pulse) -> None:
        self._entrance = entrance
        self._pulse = pulse
        self._shift: int | None = None if entrance.media is not None else 0
        self._is_retired = False
        self._takes_sound = True
        self._lock = threading.Lock()
        self._lent: Frame | None = None

    def retire(self) -> None:
        """Refuse whatever still comes; replace the frame that it has, perhaps for ever."""
        with self._lock:
            self._is_retired = True
            frame, self._lent = self._lent, None
        stages = self._entrance.stages
        if frame is not None and stages is not None:
            stages.release_frame(frame, "abandoned", is_held=True)

    def on_media(self, media: MediaInfo) -> None:
        """Take the description of the input. Outputs were told the first one: it stays.

        An ingest in the place of another is told the first one's size as its canvas (builder.py)
        and makes what comes fit; one that does not keep to it would fill frames of another size.

        Raises:
            JobError: the ingest has not kept to its canvas.
            RingClosed: another ingest has taken over.
        """
        self._check()
        entrance = self._entrance
        first = entrance.media
        if first is None:
            entrance.media = media
            entrance.has_media.set()
            return
        if (media.width, media.height) != (first.width, first.height):
            raise JobError(
                f"the input came back as {media.width}x{media.height}, "
                f"the stream is {first.width}x{first.height}",
                hint="set ingest.canvas",
            )
        if media.audio != first.audio:
            self._takes_sound = False
            self.count("audio_changed")

    def acquire_frame(self) -> Frame | None:
        """Lend a frame. A live input is not made to wait for the outputs, a file is."""
        self._wait_if_file()
        entrance = self._entrance
        if entrance.stages is None or not entrance.is_ready.is_set():
            self.count("skipped_while_starting")
            return None
        with self._lock:
            self._check()
            if self._lent is None:
                self._lent = entrance.stages.acquire_frame()
            return self._lent

    def on_frame(self, frame: Frame) -> None:
        """Take a filled frame."""
        stages = self._entrance.stages
        if stages is None:
            return
        with self._lock:
            self._check()  # what a retired ingest still has is nobody's frame any more
            self._lent = None
        frame.pts += self._find_shift(frame.pts)
        self._entrance.note_frame(frame.pts)
        stages.put_frame(frame)

    def on_audio(self, packet: Packet) -> None:
        """Take sound."""
        self._wait_if_file()
        stages = self._entrance.stages
        if stages is None or not self._entrance.is_ready.is_set() or not self._takes_sound:
            return
        self._check()
        if shift := self._find_shift(packet.pts):
            packet = replace(packet, pts=packet.pts + shift, dts=packet.dts + shift)
        stages.put_audio(packet)

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Take a change of state, with its cause."""
        if not self._is_retired:
            self._entrance.note_state(state, error)

    def count(self, event: str, amount: int = 1) -> None:
        """Count an event."""
        self._entrance.telemetry.count(event, amount)

    def begin_work(self) -> None:
        """Note that a piece of work begins; waiting for packets is none."""
        self._pulse.begin()

    def end_work(self) -> None:
        """Note that it is done."""
        self._pulse.end()

    def _find_shift(self, pts: int) -> int:
        if self._shift is None:
            self._shift = self._entrance.find_place() - pts
        return self._shift

    def _check(self) -> None:
        if self._is_retired:
            raise RingClosed

    def _wait_if_file(self) -> None:
        if self._entrance.is_waited_for and not self._entrance.is_ready.is_set():
            was_at_work = self._pulse.work is not None
            self._pulse.end()
            self._entrance.is_ready.wait()
            if was_at_work:
                self._pulse.begin()
