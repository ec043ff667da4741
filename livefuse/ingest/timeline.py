"""Arbitrary source time stamps -> strictly increasing ints in 1/90000 s on the job's line. Pure.

Sound and pictures of one segment (one connection) share one offset, so they stay in step. What a
source does wrong is mended and counted by name, never raised (cases C38, C39, C41):

    corrected_pts_missing   no time stamp: one step after the one before
    corrected_pts_order     not later than the one before: moved a little behind it
    corrected_pts_jump      too far away to be true: the line goes on and the offset moves
    corrected_pts_late      a live source goes on where it had stopped: the line is brought to now
    early_audio             sound from before the job's first picture: not passed on
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_S
from livefuse.frame import TIME_BASE_HZ
from livefuse.ingest.pace import Pace, Usual

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.ingest.ratio import Ratio

MIN_STEP: Final = 90
"""1 ms: FLV counts in milliseconds, so two stamps that are closer would collide there."""
JUMP: Final = TIME_BASE_HZ // 4
"""0.25 s: a larger step is a jump when it is also more than `JUMP_STEPS` usual ones."""
JUMP_STEPS: Final = 8
_TRUSTED_FILE_GAP: Final = 10 * TIME_BASE_HZ
_MAX_SKEW: Final = 2 * TIME_BASE_HZ
_MAX_AHEAD: Final = TIME_BASE_HZ
_DEFAULT_STEP: Final = TIME_BASE_HZ // 30


@dataclass(slots=True)
class _Track:
    """One kind's place on the line; `last_ticks` is its source's stamp, `step` usual distance."""

    offset: int | None = None
    last: int = -MIN_STEP
    last_ticks: int | None = None
    last_arrival_ns: int = 0
    has_started: bool = False
    in_segment: bool = False
    step: int = _DEFAULT_STEP
    corrections: int = 0
    usual: Usual = field(default_factory=Usual)


class SourceTimeline:
    """One job's line. Used from one thread.

    Live sources are checked against the arrival times: a gap that really took that long is kept,
    and the line keeps pace with real time (pace.py). For files arrival says nothing, so a gap of up
    to ten seconds is believed.
    """

    def __init__(self, count: Callable[[str], None], *, is_live: bool) -> None:
        self._count = count
        self._is_live = is_live
        self._origin_ns: int | None = None
        self._offset: int | None = None
        self._video, self._audio = _Track(), _Track()
        self._pace = Pace()

    def begin_segment(
        self, *stamps: tuple[int, Ratio], now_ns: int, step: int | None = None
    ) -> None:
        """Start a new connection at `now_ns`: its stamps go on behind what has been given out.

        They go on after the real time that passed since the job's first stamp, sound and pictures
        moved together. The earliest of `stamps` (pts, time base), if any, becomes the segment's
        start, else its first stamp. `step` is the usual distance of pictures in 1/90000 s.
        """
        self._offset = self._video.offset = self._audio.offset = None
        self._video.corrections = self._audio.corrections = 0
        self._video.in_segment = self._audio.in_segment = False
        self._video.last_ticks = self._audio.last_ticks = None
        self._video.usual, self._audio.usual, self._pace = Usual(), Usual(), Pace()
        if step is not None:
            self._video.step = max(step, MIN_STEP)
        if stamps:
            self._offset = self._find_position(now_ns) - min(to_ticks(*s) for s in stamps)

    def stamp_video(self, pts: int | None, time_base: Ratio | None, arrival_ns: int) -> int:
        """Return the place of a picture: at least 1 ms behind the one before."""
        ticks = _ticks(pts, time_base)
        place = self._stamp(self._video, self._audio, ticks, arrival_ns)
        if self._is_live and ticks is not None:
            self._keep_pace(ticks, place, _to_line(arrival_ns))
        return place

    def stamp_audio(
        self, pts: int | None, time_base: Ratio | None, arrival_ns: int, duration: int = 0
    ) -> int | None:
        """Return the place of a sound packet, or None when it lies before the job's start.

        `duration` is the packet's length in 1/90000 s, 0 when unknown.
        """
        track, ticks = self._audio, _ticks(pts, time_base)
        if duration > 0:
            track.step = max(duration, MIN_STEP)
        offset = self._offset if track.offset is None else track.offset
        if not track.has_started and ticks is not None and offset is not None:
            # Sound of a slow start may be many seconds old; what far away stamps alone say may be
            # that the two kinds count from unrelated starts.
            least = -_MAX_SKEW
            if self._is_live and self._origin_ns is not None and arrival_ns < self._origin_ns:
                least = min(least, 2 * _to_line(arrival_ns - self._origin_ns))
            if least < ticks + offset < 0:
                self._count("early_audio")
                return None
        return self._stamp(track, self._video, ticks, arrival_ns)

    def _stamp(self, track: _Track, other: _Track, ticks: int | None, arrival_ns: int) -> int:
        elapsed = _to_line(arrival_ns - track.last_arrival_ns) if track.has_started else 0
        if self._origin_ns is None:
            self._origin_ns = arrival_ns
        if ticks is None:
            self._count("corrected_pts_missing")
            # A new connection's first stamp may be missing: the time in between has passed too.
            start = self._find_start(track, other, arrival_ns)
            place = max(start, track.last + MIN_STEP)
        elif track.offset is None:
            place = self._place_first(track, other, ticks, arrival_ns)
        else:
            place = self._place(track, other, ticks, track.offset, elapsed if self._is_live else 0)
        if not self._pace.moved:
            track.usual.note(place, _to_line(arrival_ns))
        track.last, track.last_arrival_ns = place, arrival_ns
        track.last_ticks = track.last_ticks if ticks is None else ticks
        track.has_started = track.in_segment = True
        return place

    def _place_first(self, track: _Track, other: _Track, ticks: int, arrival_ns: int) -> int:
        """Place a segment's first stamp of this kind; both kinds use one offset."""
        if self._offset is None:
            self._offset = self._find_start(track, other, arrival_ns) - ticks
        track.offset = self._offset
        if self._is_live and other.has_started and other.offset is not None:
            expected = other.last + _to_line(arrival_ns - other.last_arrival_ns)
            if abs(ticks + track.offset - expected) > _MAX_SKEW:
                # The two kinds count from unrelated starts; when they came is all there is.
                self._count("corrected_pts_jump")
                track.offset = expected - ticks
        if ticks + track.offset - track.last >= MIN_STEP:
            return ticks + track.offset
        return self._place(track, other, ticks, track.offset, 0)

    def _place(self, track: _Track, other: _Track, ticks: int, offset: int, elapsed: int) -> int:
        delta = ticks + offset - track.last
        if self._is_live and self._pace.moved and self._is_caught_up(track, delta, elapsed):
            self._move(-self._pace.moved)
            delta = ticks + (track.offset or 0) - track.last
        if ticks == track.last_ticks:
            return self._correct_order(track, delta, elapsed, has_advanced=False)
        limit = max(JUMP, JUMP_STEPS * track.step)
        is_jump = delta <= -JUMP or (
            delta > limit
            and not self._is_real_gap(delta, elapsed, track.last + delta - other.last)
            and not self._is_back(track, delta, elapsed)
        )
        if is_jump:
            track.corrections = 0
            return self._reanchor(track, other, ticks, limit, elapsed)
        if delta < MIN_STEP:
            has_advanced = track.last_ticks is not None and ticks > track.last_ticks
            return self._correct_order(track, delta, elapsed, has_advanced=has_advanced)
        track.corrections = 0
        if delta <= limit:
            # A gap that was caught up with says little of what is usual.
            usual = min(delta, 2 * track.step)
            track.step = max(track.step + (usual - track.step) // 8, MIN_STEP)
        return track.last + delta

    def _correct_order(self, track: _Track, delta: int, elapsed: int, *, has_advanced: bool) -> int:
        """Go on a little behind the last stamp, so that the next right one needs no correction.

        Stamps that advance behind the line are let catch up with it. A single repetition gets half
        a step; a stuck source gets the time that passed (a file: whole steps), which keeps the line
        in real time, so that its catching up is no jump.
        """
        self._count("corrected_pts_order")
        track.corrections += 1
        if delta > 0 or has_advanced:
            return track.last + MIN_STEP
        step = min(elapsed, 4 * track.step) if self._is_live else track.step
        if track.corrections == 1:
            step = track.step // 2
        return track.last + max(step, MIN_STEP)

    def _is_real_gap(self, delta: int, elapsed: int, ahead_of_other: int) -> bool:
        if self._is_live:
            return abs(delta - elapsed) <= JUMP // 2 + delta // 8
        return delta <= _TRUSTED_FILE_GAP or abs(ahead_of_other) <= TIME_BASE_HZ

    def _is_back(self, track: _Track, delta: int, elapsed: int) -> bool:
        """Say whether a step leads back to where the time is.

        After a stall a source may first send what it held back: such a picture is placed where it
        was taken, and the step to what is live is no longer the time since that picture came.
        """
        if not self._is_live:
            return False
        now = _to_line(track.last_arrival_ns) + elapsed
        return track.usual.fits(track.last + delta, now, JUMP // 2 + delta // 8)

    def _is_caught_up(self, track: _Track, delta: int, elapsed: int) -> bool:
        """Say whether a source that the line was moved for is back where it would have been."""
        moved = self._pace.moved
        return delta > max(JUMP, moved // 2) and self._is_back(track, delta - moved, elapsed)

    def _keep_pace(self, ticks: int, place: int, now: int) -> None:
        """Bring the line to real time again, for sound and pictures together."""
        video = self._video
        if video.offset is None:
            return
        by = self._pace.note(video.usual, place, ticks + video.offset, now)
        if by > 0:
            self._count("corrected_pts_late")
        self._move(by)

    def _move(self, by: int) -> None:
        """Move what is given out from here on; what has been stays."""
        self._pace.moved += by
        if self._offset is not None:
            self._offset += by
        for track in (self._video, self._audio):
            if track.offset is not None:
                track.offset += by

    def _reanchor(self, track: _Track, other: _Track, ticks: int, limit: int, elapsed: int) -> int:
        """Move this kind's offset: to the other kind's if that fits, else to go on from here.

        The other's fits when it puts the stamp close to the last one, be it before it: this kind
        has run ahead while its stamps were wrong, and waits until sound and pictures are in step.
        """
        self._count("corrected_pts_jump")
        shared = other.offset
        is_apart = shared != track.offset
        if shared is not None and is_apart and -_MAX_AHEAD < ticks + shared - track.last <= limit:
            track.offset = shared
        else:
            step = max(track.step, min(elapsed, _TRUSTED_FILE_GAP), MIN_STEP)
            track.offset = track.last + step - ticks
        return max(ticks + track.offset, track.last + MIN_STEP)

    def _find_start(self, track: _Track, other: _Track, arrival_ns: int) -> int:
        """Place a segment's first stamp; RTSP gives none with the first picture."""
        if track.in_segment:
            return track.last + track.step
        if other.in_segment:
            return max(other.last + _to_line(arrival_ns - other.last_arrival_ns), 0)
        return self._find_position(arrival_ns)

    def _find_position(self, now_ns: int) -> int:
        """Return where a segment starts: after the real time passed, behind everything so far."""
        if not (self._video.has_started or self._audio.has_started):
            return 0
        origin_ns = now_ns if self._origin_ns is None else self._origin_ns
        passed = _to_line(now_ns - origin_ns) if self._is_live else 0
        return max(passed, max(self._video.last, self._audio.last) + self._video.step)


def to_ticks(stamp: int, time_base: Ratio) -> int:
    """Return `stamp` (in `time_base` seconds) in 1/90000 s, rounded to the nearest."""
    scaled = stamp * time_base.numerator * TIME_BASE_HZ
    return (2 * scaled + time_base.denominator) // (2 * time_base.denominator)


def _ticks(stamp: int | None, time_base: Ratio | None) -> int | None:
    # PyAV 19 gives a false object, not None, for a missing time base.
    return None if stamp is None or not time_base else to_ticks(stamp, time_base)


def _to_line(duration_ns: int) -> int:
    return duration_ns * TIME_BASE_HZ // NS_PER_S
