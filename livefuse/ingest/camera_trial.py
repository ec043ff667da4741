"""Judge the first seconds of a camera: black pictures or hardly any are no picture (case C56)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from livefuse.clock import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    import threading

    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.errors import LivefuseError
    from livefuse.frame import Frame
    from livefuse.ingest.base import IngestSink, InputState, MediaInfo
    from livefuse.packet import Packet

Verdict = Literal["", "black", "slow"]

_SAMPLE_STEP_PX: Final = 16
_BLACK_LEVEL: Final = 24
_BLACK_SPREAD: Final = 4
_SLOWEST_FPS: Final = 3.0


class Trial:
    """A sink in front of the job's; sets `give_up` when `open_timeout_ms` brought nothing of use.

    All pictures go on to the job meanwhile. `verdict` says what was wrong, `fps` how fast it was.
    """

    def __init__(
        self, sink: IngestSink, config: IngestConfig, clock: Clock, give_up: threading.Event
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._give_up = give_up
        self._window_ns = config.open_timeout_ms * NS_PER_MS
        self._slowest_fps = min(_SLOWEST_FPS, config.camera_fps / 4)
        self.begin()

    def begin(self) -> None:
        """Judge anew, from the next picture on."""
        self.verdict: Verdict = ""
        self.is_passed = False
        self.fps = 0.0
        self._frames = 0
        self._has_seen = False
        self._first_ns = 0

    def on_media(self, media: MediaInfo) -> None:
        """Pass on."""
        self._sink.on_media(media)

    def acquire_frame(self) -> Frame | None:
        """Pass on."""
        return self._sink.acquire_frame()

    def on_frame(self, frame: Frame) -> None:
        """Judge and pass on."""
        if not (self.is_passed or self.verdict):
            self._judge(frame)
        self._sink.on_frame(frame)

    def on_audio(self, packet: Packet) -> None:
        """Pass on."""
        self._sink.on_audio(packet)

    def on_state(self, state: InputState, error: LivefuseError | None = None) -> None:
        """Pass on."""
        self._sink.on_state(state, error)

    def count(self, event: str, amount: int = 1) -> None:
        """Pass on."""
        self._sink.count(event, amount)

    def begin_work(self) -> None:
        """Pass on."""
        self._sink.begin_work()

    def end_work(self) -> None:
        """Pass on."""
        self._sink.end_work()

    def _judge(self, frame: Frame) -> None:
        now_ns = self._clock.now_ns()
        if not self._frames:
            self._first_ns = now_ns
        self._frames += 1
        self._has_seen = self._has_seen or not is_black(frame)
        elapsed_ns = now_ns - self._first_ns
        if elapsed_ns < self._window_ns:
            return
        self.fps = (self._frames - 1) * NS_PER_S / elapsed_ns
        if not self._has_seen:
            self.verdict = "black"
        elif self.fps < self._slowest_fps:
            self.verdict = "slow"
        self.is_passed = not self.verdict
        if self.verdict:
            self._give_up.set()


def is_black(frame: Frame) -> bool:
    """Tell whether a picture is as good as black everywhere (a closed shutter, a dead sensor)."""
    sample = frame.y[::_SAMPLE_STEP_PX, ::_SAMPLE_STEP_PX]
    low, high = int(sample.min()), int(sample.max())
    return high <= _BLACK_LEVEL and high - low <= _BLACK_SPREAD
