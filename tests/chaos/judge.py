"""What the far end got: does it play, do its stamps rise, are there gaps, is sound in step.

Pictures carry a counter that the camera locks to the clock: `LOOP_FRAMES` values, round and round.
So each picture tells when it was taken, and a recording's line of time is tied to the run's.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import av
import av.error

from livefuse.ingest.scene.drawing import is_flash_lit, read_counter
from tests.chaos.peers import FPS, LOOP_FRAMES
from tests.measure import Picture, Recording, _to_mono, find_beeps, get_luma

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Look = Callable[["Seen", NDArray[np.uint8], Any], None]

GAP_S = 1.5
_SETTLE_S = 5.0
_BEEP_WITHIN_S = 0.2


@dataclass(slots=True)
class Seen:
    """One picture: its PTS, the counter as read, that counted on from the epoch, its place."""

    pts_s: float
    raw: int | None
    number: int | None
    index: int


@dataclass(slots=True)
class Track:
    """One recording. `shift_s` added to a PTS gives s after the epoch, as the picture was taken."""

    name: str
    seen: list[Seen] = field(default_factory=list)
    recording: Recording = field(default_factory=Recording)
    errors: list[str] = field(default_factory=list)
    shift_s: float | None = None

    def to_time_s(self, pts_s: float) -> float:
        """Return when a picture of that PTS was to be seen, in s after the epoch."""
        return pts_s + (self.shift_s or 0.0)


def read_track(
    path: Path,
    look: Look | None = None,
    *,
    begins_s: float = 0.0,
    shift_s: float | None = None,
) -> Track:
    """Decode all of `path`. `look` is shown each picture: what is known, its luma, PyAV's frame.

    To tell the counter's turns: about when the recording begins, in s after the epoch, or what is
    to be added to its stamps to get there.
    """
    track = Track(path.name)
    counting = _Counting(begins_s, shift_s)
    with av.open(str(path)) as container:
        streams = [s for s in container.streams if s.type in ("video", "audio")]
        for stream in streams:
            if stream.type == "audio":
                track.recording.sample_rate_hz = int(
                    getattr(stream.codec_context, "sample_rate", 0)
                )
        try:
            for packet in container.demux(streams):
                _take(packet, track, counting, look)
        except (av.error.FFmpegError, OSError) as error:
            track.errors.append(f"cannot be read on ({error})")
    track.shift_s = counting.shift_s
    return track


class _Counting:
    """Counts on over the turns of the counter. A held picture keeps its number."""

    def __init__(self, begins_s: float, shift_s: float | None) -> None:
        self.shift_s: float | None = None
        self._begins_s = begins_s
        self._hint_s = shift_s
        self._last: tuple[int, int] | None = None
        self._first_pts_s: float | None = None

    def count(self, raw: int | None, pts_s: float) -> int | None:
        if self._first_pts_s is None:
            self._first_pts_s = pts_s
        if raw is None:
            return None
        if self._last is not None and raw == self._last[0]:
            return self._last[1]
        expected = round(self._expect_s(pts_s) * FPS)
        turns = round((expected - raw) / LOOP_FRAMES)
        number = raw + turns * LOOP_FRAMES
        if self.shift_s is None:
            self.shift_s = number / FPS - pts_s
        self._last = (raw, number)
        return number

    def _expect_s(self, pts_s: float) -> float:
        shift_s = self.shift_s if self._hint_s is None else self._hint_s
        if shift_s is not None:
            return pts_s + shift_s
        return self._begins_s + pts_s - (self._first_pts_s or 0.0)


def _take(packet: Any, track: Track, counting: _Counting, look: Look | None) -> None:
    is_video = packet.stream.type == "video"
    recording = track.recording
    if packet.size and packet.dts is not None:
        dts_s = float(packet.dts * packet.time_base)
        (recording.video_dts_s if is_video else recording.audio_dts_s).append(dts_s)
    try:
        frames = packet.decode()
    except av.error.FFmpegError as error:
        track.errors.append(f"{packet.stream.type} at {packet.pts}: {error}")
        return
    for frame in frames:
        if is_video:
            _take_picture(frame, track, counting, look)
        else:
            recording.audio.append((float(frame.pts * frame.time_base), _to_mono(frame)))


def _take_picture(frame: Any, track: Track, counting: _Counting, look: Look | None) -> None:
    luma = get_luma(frame)
    pts_s = float(frame.pts * frame.time_base)
    raw = read_counter(luma)
    if raw is not None and raw >= LOOP_FRAMES:
        raw = None  # a blurred picture was misread
    seen = Seen(pts_s, raw, counting.count(raw, pts_s), len(track.seen))
    if frame.is_corrupt:
        track.errors.append(f"a corrupt picture at {pts_s:.3f} s")
    track.seen.append(seen)
    flash = is_flash_lit(luma)
    track.recording.video.append(Picture(pts_s, raw, flash, frame.width, frame.height, 0.0))
    if look is not None:
        look(seen, luma, frame)


def find_gaps(times_s: Iterable[float], longest_s: float = GAP_S) -> list[tuple[float, float]]:
    """Return (begin, end) of each gap longer than `longest_s`."""
    return [(a, b) for a, b in itertools.pairwise(times_s) if b - a > longest_s]


def count_not_rising(values: Iterable[float]) -> int:
    """Return how often a value is not above the one before."""
    return sum(b <= a for a, b in itertools.pairwise(values))


def find_steps_back(track: Track) -> list[tuple[float, int, int]]:
    """Return (PTS, number before, number) wherever a picture is older than the one before."""
    known = [(s.pts_s, s.number) for s in track.seen if s.number is not None]
    return [(b[0], a[1], b[1]) for a, b in itertools.pairwise(known) if b[1] < a[1]]


def find_calm(busy: list[tuple[float, float]], began_s: float, ended_s: float) -> list[Any]:
    """Return the (begin, end) between `busy` intervals, each with time to settle before it."""
    calm = []
    at_s = began_s
    for begin_s, end_s in [*sorted(busy), (ended_s, ended_s)]:
        if begin_s - at_s >= 2.0:
            calm.append((at_s, begin_s))
        at_s = max(at_s, end_s + _SETTLE_S)
    return calm


def measure_sync(track: Track, calm: list[tuple[float, float]]) -> tuple[list[float], int]:
    """Return beep minus flash in ms within calm intervals (s after the epoch), and how many flashes
    have no beep near them.

    A flash counts when its first picture is there: one that was dropped would look like late sound.
    """
    found, mute = [], 0
    for begin_s, end_s in calm:
        part = _cut(track, begin_s, end_s)
        beeps = find_beeps(part) if part.audio else []
        for seen in track.seen:
            at_s = track.to_time_s(seen.pts_s)
            if not (begin_s <= at_s <= end_s and _is_onset(track, seen)):
                continue
            apart = [beep_s - seen.pts_s for beep_s in beeps]
            nearest = min(apart, key=abs, default=float("inf"))
            if abs(nearest) < _BEEP_WITHIN_S:
                found.append(nearest * 1000.0)
            else:
                mute += 1
    return found, mute


def _is_onset(track: Track, seen: Seen) -> bool:
    """Say whether `seen` is the first picture of a flash, shown for the first time."""
    if seen.raw is None or seen.raw % FPS or not track.recording.video[seen.index].is_flash:
        return False
    return seen.index > 0 and track.seen[seen.index - 1].raw != seen.raw


def _cut(track: Track, begin_s: float, end_s: float) -> Recording:
    """Return the sound of an interval, in s after the epoch, and half a second around it."""
    part = Recording(sample_rate_hz=track.recording.sample_rate_hz)
    part.audio = [
        (pts_s, samples)
        for pts_s, samples in track.recording.audio
        if begin_s - 0.5 <= track.to_time_s(pts_s) <= end_s + 0.5
    ]
    return part


def measure_delays(track: Track) -> list[tuple[float, float]]:
    """Return (time, PTS line against the time of taking, in s) where the counter can be read.

    It grows when the line of time falls behind what is shown on it.
    """
    return [
        (track.to_time_s(s.pts_s), track.to_time_s(s.pts_s) - s.number / FPS)
        for s in track.seen
        if s.number is not None
    ]
