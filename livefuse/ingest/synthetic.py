"""`test:` and `demo:`: pictures and sound made here, with a counter and a moment of sync burnt in.

    test:?size=1280x720&fps=30&audio=1&frames=300&sync=1    bars, a disc, a flash with each beep
    demo:?size=1280x720&fps=30&audio=1&frames=300&sync=0    a talking head

All options may be left out; without `frames` it goes on for ever.
"""

from __future__ import annotations

import difflib
import re
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import parse_qsl

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.errors import ConfigError
from livefuse.frame import TIME_BASE_HZ, Colour
from livefuse.ingest.base import MediaInfo
from livefuse.ingest.scene.bars import BarsPicture
from livefuse.ingest.scene.drawing import FLASH_S, draw_counter, draw_flash
from livefuse.ingest.scene.talking_head import TalkingHead
from livefuse.ingest.scene.voice import (
    AacSource,
    find_sync_moments,
    synthesize_hum,
    synthesize_voice,
)

if TYPE_CHECKING:
    from livefuse.clock import Clock
    from livefuse.config import IngestConfig
    from livefuse.frame import Frame
    from livefuse.ingest.base import IngestSink
    from livefuse.packet import Packet

Kind = Literal["test", "demo"]

# Sound is handed over this much ahead of the picture, so that a muxer never waits for it.
_AUDIO_LEAD_S: Final = 0.05
_POOL_WAIT_NS: Final = 2 * NS_PER_MS
_SIZE: Final = re.compile(r"([1-9]\d{1,3})x([1-9]\d{1,3})")
_MAX_FPS: Final = 240
_SMALLEST_PX: Final = 64
_NTSC: Final = Fraction(1001, 1000)


@dataclass(slots=True, frozen=True)
class SyntheticOptions:
    """What the URL asks for. `frames` is None for no end."""

    kind: Kind
    width: int = 1280
    height: int = 720
    fps: Fraction = Fraction(30)
    has_audio: bool = True
    frames: int | None = None
    has_sync: bool = True


class _Turn(NamedTuple):
    """A frame that is due: its number and when, on the media's line and on the clock."""

    number: int
    time_s: float
    due_ns: int


def parse_synthetic_url(url: str) -> SyntheticOptions:
    """Read a `test:` or `demo:` URL.

    Raises:
        ConfigError: an option is unknown or its value cannot be used.
    """
    scheme, _, rest = url.partition(":")
    path, _, query = rest.partition("?")
    if scheme not in ("test", "demo") or path.strip("/"):
        raise ConfigError(f"cannot read {url!r}", hint="write test: or demo:, with ?options")
    kind: Kind = "test" if scheme == "test" else "demo"
    options = SyntheticOptions(kind, has_sync=kind == "test")
    for name, value in parse_qsl(query, keep_blank_values=True):
        options = _apply_option(options, name, value)
    return options


def _apply_option(options: SyntheticOptions, name: str, value: str) -> SyntheticOptions:
    known = ("size", "fps", "audio", "frames", "sync")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"unknown option {name} of {options.kind}:",
            hint=f"{guess}the options are {', '.join(known)}",
        )
    try:
        return _set_option(options, name, value)
    except (ValueError, ZeroDivisionError):
        raise ConfigError(
            f"{name}={value} cannot be used with {options.kind}:",
            hint="for example size=1280x720, even and at least 64 px, fps=30, audio=1, frames=300",
        ) from None


def _set_option(options: SyntheticOptions, name: str, value: str) -> SyntheticOptions:
    if name == "size":
        width, height = _parse_size(value)
        return replace(options, width=width, height=height)
    if name == "fps":
        return replace(options, fps=_parse_fps(value))
    if name == "frames":
        return replace(options, frames=_parse_count(value))
    flag = {"0": False, "1": True}.get(value)
    if flag is None:
        raise ValueError(value)
    return replace(options, has_audio=flag) if name == "audio" else replace(options, has_sync=flag)


def _parse_size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    width, height = int(match[1]), int(match[2])
    if width % 2 or height % 2 or min(width, height) < _SMALLEST_PX:
        raise ValueError(text)
    return width, height


def _parse_fps(text: str) -> Fraction:
    """Return 30000/1001 for `29.97`, and so for its kin; else the number itself."""
    fps = Fraction(text)
    nearest = Fraction(round(fps * _NTSC)) / _NTSC
    if fps.denominator != 1 and abs(fps - nearest) < Fraction(1, 100):
        fps = nearest
    if not 1 <= fps <= _MAX_FPS:
        raise ValueError(text)
    return fps


def _parse_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


class SyntheticIngest:
    """A source that needs nothing. `paced` keeps to the clock, else it goes as fast as taken."""

    def __init__(
        self,
        url: str,
        config: IngestConfig,
        clock: Clock,
        *,
        paced: bool = True,
        every_frame: bool = False,
    ) -> None:
        """Read the URL; nothing is made before `run`.

        Raises:
            ConfigError: the URL's options cannot be used.
        """
        self.options = parse_synthetic_url(url)
        self._clock = clock
        self._is_paced = paced
        self._waits_for_pool = every_frame or not paced
        self._has_audio = self.options.has_audio and config.audio
        self._has_delivered = False
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask `run` to return; from any thread."""
        self._stop.set()

    def run(self, sink: IngestSink) -> None:
        """Draw, encode sound and hand both over until `frames` are done or `stop` is called."""
        options = self.options
        picture = self._create_picture()
        sound = self._create_sound()
        sink.on_media(
            MediaInfo(
                width=options.width,
                height=options.height,
                fps=float(options.fps),
                colour=Colour("bt709", full_range=False),
                audio=sound.info if sound is not None else None,
                is_live=self._is_paced,
                decoder="synthetic",
            )
        )
        sink.on_state("live")
        start_ns, number = self._clock.now_ns(), 0
        while not self._is_over(number):
            number = self._wait_for_turn(sink, start_ns, number)
            if self._is_over(number):
                break
            self._take_turn(sink, picture, sound, self._plan_turn(start_ns, number))
            number += 1
        if sound is not None and not self._stop.is_set():
            self._send(sink, sound.finish(self._clock.now_ns()))
        sink.on_state("ended")

    def _is_over(self, number: int) -> bool:
        frames = self.options.frames
        return self._stop.is_set() or (frames is not None and number >= frames)

    def _create_picture(self) -> BarsPicture | TalkingHead:
        kind = BarsPicture if self.options.kind == "test" else TalkingHead
        return kind(self.options.width, self.options.height)

    def _create_sound(self) -> AacSource | None:
        if not self._has_audio:
            return None
        voice = synthesize_hum if self.options.kind == "test" else synthesize_voice
        return AacSource(voice, self.options.fps if self.options.has_sync else None)

    def _plan_turn(self, start_ns: int, number: int) -> _Turn:
        time_s = float(number / self.options.fps)
        return _Turn(number, time_s, start_ns + int(number * NS_PER_S / self.options.fps))

    def _wait_for_turn(self, sink: IngestSink, start_ns: int, number: int) -> int:
        """Wait until frame `number` is due and return it, or a later one when it is long past.

        Deadlines are absolute, so nothing drifts; frames that are late by more than one interval
        are left out, so nothing piles up.
        """
        if not self._is_paced:
            return number
        now_ns = self._clock.now_ns()
        self._clock.wait(self._stop, self._plan_turn(start_ns, number).due_ns - now_ns)
        if self._waits_for_pool:
            return number
        due = int((self._clock.now_ns() - start_ns) * self.options.fps / NS_PER_S)
        if due - number <= 1:
            return number
        frames = self.options.frames
        due = due if frames is None else min(due, frames)
        sink.count("dropped_late", due - number)
        return due

    def _take_turn(
        self,
        sink: IngestSink,
        picture: BarsPicture | TalkingHead,
        sound: AacSource | None,
        turn: _Turn,
    ) -> None:
        if sound is not None:
            until_s = turn.time_s + float(1 / self.options.fps)
            lead_s = _AUDIO_LEAD_S if self._is_paced else 0.0
            self._send(sink, sound.encode_until(until_s + lead_s, self._clock.now_ns()))
        frame = self._acquire(sink)
        if frame is None:
            return
        self._draw(frame, picture, turn)
        frame.pts = round(turn.number * TIME_BASE_HZ / self.options.fps)
        # Drawing is the source's own time, as exposing is a camera's.
        frame.arrival_ns = self._clock.now_ns()
        frame.colour = Colour("bt709", full_range=False)
        self._has_delivered = True
        sink.on_frame(frame)

    def _draw(self, frame: Frame, picture: BarsPicture | TalkingHead, turn: _Turn) -> None:
        if isinstance(picture, BarsPicture):
            picture.draw(frame, turn.time_s, turn.number)
        else:
            picture.draw(frame, turn.time_s)
        if self.options.has_sync:
            draw_flash(frame, is_lit=is_flash_due(turn.time_s, self.options.fps))
        draw_counter(frame, turn.number, "large" if self.options.kind == "test" else "small")

    def _acquire(self, sink: IngestSink) -> Frame | None:
        frame = sink.acquire_frame()
        while frame is None and self._waits_for_pool and not self._stop.is_set():
            self._clock.wait(self._stop, _POOL_WAIT_NS)
            frame = sink.acquire_frame()
        if frame is None and self._has_delivered and not self._stop.is_set():
            sink.count("dropped_pool")
        return frame

    def _send(self, sink: IngestSink, packets: list[Packet]) -> None:
        for packet in packets:
            sink.on_audio(packet)


def is_flash_due(time_s: float, fps: Fraction) -> bool:
    """Tell whether the picture of `time_s` shows the flash."""
    slack_s = 1e-6
    return any(
        -slack_s <= time_s - moment_s < FLASH_S - slack_s
        for moment_s in find_sync_moments(fps, time_s - FLASH_S, time_s)
    )
