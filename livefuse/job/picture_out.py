"""Treated frames -> marks -> one encode -> packets for all; the last picture while none comes.

The output outlives its input: when no frame has come for a second the last one goes on, as it is,
blurred, or a slate, five times a second and stamped with the time that passes, so that a server
keeps the line and players keep playing. The first new frame takes its place. A consent that ends
meanwhile hides it.

It outlives its encoder too: when that fails or hangs, another thread goes on with a new one where
the old one was, and what the old one still gives is refused.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S, Clock
from livefuse.frame import TIME_BASE_HZ, Frame, FramePool
from livefuse.publish.luma.embed import LumaMark
from livefuse.publish.mark import Label
from livefuse.publish.sei import SeiStamp
from livefuse.ring import Ring, RingClosed
from livefuse.safety.cover import cover_frame, draw_slate

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config, HoldConfig
    from livefuse.job.watchdog import Pulse
    from livefuse.packet import Packet
    from livefuse.publish.encode import VideoEncoder
    from livefuse.publish.fanout import FanOut
    from livefuse.safety.mark_keys import JobMarks
    from livefuse.telemetry import Telemetry

# For so long frames may come with an older stamp than what was shown: then the line is moved. An
# ingest's own line is back in real time before that (ingest/pace.py). Those that come twice as fast
# as they were taken catch up by themselves.
_MAX_BEHIND_NS: Final = NS_PER_S
_MAX_BEHIND: Final = TIME_BASE_HZ
_FRAMES_TOGETHER: Final = 3
_COVERS: Final[dict[str, Callable[[Frame], None]]] = {"blur": cover_frame, "slate": draw_slate}


class PictureHold:
    """The last picture that was shown, and when it is to be shown again. One thread."""

    def __init__(self, config: HoldConfig, frame_ms: float) -> None:
        self._show = config.show
        self._after_ns = round(max(config.after_ms, 3 * frame_ms) * NS_PER_MS)
        self._every_ns = round(NS_PER_S / config.fps)
        self._frame: Frame | None = None
        self._shown_ns = self._repeated_ns = 0
        self._pts = 0
        self._is_hidden = self._needs_mark = False
        self.is_holding = False

    def keep(self, frame: Frame, now_ns: int) -> Frame | None:
        """Take the frame that has just been shown; return the one before, which is free now."""
        before, self._frame = self._frame, frame
        self._shown_ns = self._repeated_ns = now_ns
        self._pts = frame.pts
        self._is_hidden = self._needs_mark = False
        self.is_holding = False
        return before

    def get_wait_ns(self, now_ns: int) -> int | None:
        """Return how long to wait for a frame before one is to be repeated; None: for ever."""
        if self._frame is None:
            return None
        due_ns = self._shown_ns + self._after_ns
        if self.is_holding:
            due_ns = self._repeated_ns + self._every_ns
        return max(due_ns - now_ns, 0)

    def count_ticks_since(self, now_ns: int) -> int:
        """Return the time since a picture was shown, new or again, in 1/90000 s."""
        return (now_ns - self._repeated_ns) * TIME_BASE_HZ // NS_PER_S

    def repeat(self, now_ns: int) -> Frame | None:
        """Return the picture to show at `now_ns`, stamped with the time that has passed."""
        frame = self._frame
        if frame is None:
            return None
        if not self.is_holding and self._show in _COVERS:
            self._cover(_COVERS[self._show])
        self.is_holding = True
        self._repeated_ns = now_ns
        frame.arrival_ns = now_ns  # a delay that is to be constant counts from now
        frame.pts = self._pts + (now_ns - self._shown_ns) * TIME_BASE_HZ // NS_PER_S
        return frame

    def hide(self) -> None:
        """Let nothing be seen of the picture any more."""
        if not self._is_hidden:
            self._cover(cover_frame)
            self._is_hidden = True

    def take_mark(self) -> bool:
        """Say, once for each time, whether the picture has lost its label and needs another."""
        needs_mark, self._needs_mark = self._needs_mark, False
        return needs_mark

    def _cover(self, cover: Callable[[Frame], None]) -> None:
        if self._frame is not None:
            self._frame.fill_planes()
            cover(self._frame)
            self._needs_mark = True


class PictureOut:
    """One job's encode. `run` has a thread of its own; `renew` gives its work to another."""

    def __init__(
        self,
        encoder: VideoEncoder,
        fanout: FanOut,
        telemetry: Telemetry,
        config: Config,
        marks: JobMarks,
        frame_ms: float,
    ) -> None:
        self.encoder = encoder
        self._fanout = fanout
        self._telemetry = telemetry
        self._clock: Clock = telemetry.clock
        self._hold = PictureHold(config.hold, frame_ms)
        self._luma_mark = LumaMark(marks.keys.luma_key, marks.number)
        self._label = Label(config.mark)
        self._stamp = SeiStamp(marks.number, marks.keys.key_id, marks.keys.signing.sign)
        self._may_show: Callable[[], bool] | None = None
        self._pulse: Pulse | None = None
        self._owner: int | None = None  # the thread whose turn it is
        self._lock = threading.Lock()
        self._in_hand: Frame | None = None
        self._has_generated = False
        self.last_pts = -1
        """The stamp of the last picture shown, held ones too."""
        self.shift = 0
        """How far pictures are moved, since their source goes on where it had stopped."""
        self.when_shown: Callable[[], None] = _do_nothing
        """Called after each picture, held ones too, from the encode thread."""
        self._behind_ns: int | None = None  # since when frames come with older stamps
        self._behind_pts = self._late_ns = 0
        self._together_ns = max(NS_PER_S, round(_FRAMES_TOGETHER * frame_ms * NS_PER_MS))

    @property
    def is_holding(self) -> bool:
        """Whether the last picture is shown for want of another."""
        return self._hold.is_holding

    def renew(self, encoder: VideoEncoder) -> Frame | None:
        """Take another encoder, for the next thread that calls `run`; the one before is refused.

        Returns the frame that the thread before may still have its hands on. From any thread.
        """
        with self._lock:
            self._owner = None
            self.encoder = encoder
            frame, self._in_hand = self._in_hand, None
        return frame

    def run(
        self,
        treated: Ring[Frame],
        pool: FramePool,
        *,
        may_hold: bool,
        may_show: Callable[[], bool] | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        """Encode each frame once for all outputs and give it back to the pool, until the end.

        `may_show` says whether the last picture may still be seen when it is to be repeated;
        `pulse` is told when there is work.

        Raises:
            RingClosed: another thread has taken over.
            PublishError: the encoder failed.
        """
        self._may_show, self._pulse = may_show, pulse
        self._owner = threading.get_ident()
        try:
            while True:
                now_ns = self._clock.now_ns()
                wait_ns = self._hold.get_wait_ns(now_ns) if may_hold else None
                frame = treated.take() if wait_ns is None else treated.take_within(wait_ns)
                self._serve(frame, pool)
        except RingClosed:
            if self._owner != threading.get_ident():
                raise
            for packet in self.encoder.flush():
                self._send(packet)

    def _serve(self, frame: Frame | None, pool: FramePool) -> None:
        pulse = self._pulse
        if pulse is not None:
            pulse.begin()
        if frame is None:
            self._repeat()
        elif not self._is_behind(frame):
            self._show_new(frame, pool)
        else:
            pool.release(frame)
        self.when_shown()
        if pulse is not None:
            pulse.end()

    def _show_new(self, frame: Frame, pool: FramePool) -> None:
        started_ns = self._clock.now_ns()
        self._in_hand = frame
        self._show(frame)
        self._clock.charge("encode")
        now_ns = self._clock.now_ns()
        self._telemetry.observe_step("encode", (now_ns - started_ns) / NS_PER_MS)
        self._telemetry.latency.add((now_ns - frame.arrival_ns) / NS_PER_MS)
        self._telemetry.frames_out.add()
        before = self._hold.keep(frame, now_ns)
        self._in_hand = None
        if before is not None:
            pool.release(before)

    def _repeat(self) -> None:
        if self._may_show is not None and not self._may_show():
            self._hold.hide()
        frame = self._hold.repeat(self._clock.now_ns())
        if frame is not None and frame.pts > self.last_pts:
            self._telemetry.count("held_frames")
            self._show(frame, needs_mark=self._hold.take_mark(), is_held=True)

    def _is_behind(self, frame: Frame) -> bool:
        """Say whether `frame` is older than what was shown: after a hold for a frame or two.

        A source that goes on where it stopped, as if no time had passed, moves the line instead.
        """
        now_ns = self._clock.now_ns()
        if self.shift and self._is_found_again(frame, now_ns):
            self.shift = 0
        frame.pts += self.shift
        if frame.pts > self.last_pts:
            self._behind_ns = None
            return False
        if self._behind_ns is None or now_ns - self._late_ns > self._together_ns:
            self._behind_ns, self._behind_pts = now_ns, frame.pts  # one says nothing of the next
        self._late_ns = now_ns
        is_over = now_ns - self._behind_ns >= _MAX_BEHIND_NS
        if is_over and frame.pts - self._behind_pts >= 2 * _MAX_BEHIND:
            self._behind_ns, self._behind_pts, is_over = now_ns, frame.pts, False
        if not is_over:
            self._telemetry.count("dropped_behind_hold")
            self._telemetry.journal.note_drop(frame, "behind_hold")
            return True
        moved = self.last_pts + TIME_BASE_HZ // 30 - frame.pts
        self.shift, frame.pts = self.shift + moved, frame.pts + moved
        self._behind_ns = None
        return False

    def _is_found_again(self, frame: Frame, now_ns: int) -> bool:
        """Say whether `frame` fits the time that passed better as it is than moved.

        So it is once the source's line, which had stood still, has been brought back to real time.
        """
        passed = self._hold.count_ticks_since(now_ns)
        ahead = frame.pts - self.last_pts
        return ahead > 0 and abs(ahead - passed) < abs(ahead + self.shift - passed)

    def _show(self, frame: Frame, *, needs_mark: bool = True, is_held: bool = False) -> None:
        """Mark after all else, before anything leaves; then encode for everybody."""
        self.last_pts = frame.pts
        if frame.is_generated:
            self._has_generated = True
            if needs_mark:
                self._luma_mark.draw(frame, anew=is_held)
                self._label.draw(frame)
            if not is_held:
                self._telemetry.count("marked_frames")
        self._telemetry.journal.note_shown(frame, is_held=is_held)
        self._fanout.show(frame)
        self._check_turn()
        packets = self.encoder.encode(frame)
        with self._lock:
            self._check_turn()
            for packet in packets:
                self._send(packet)

    def _send(self, packet: Packet) -> None:
        if self._has_generated:
            bare, packet = packet, self._stamp.stamp(packet, self._clock.epoch_s())
            if packet is not bare:
                self._telemetry.count("keyframe_records")
        self._fanout.send(packet)

    def _check_turn(self) -> None:
        if self._owner != threading.get_ident():
            self._telemetry.count("refused_late_frames")
            raise RingClosed


def _do_nothing() -> None:
    """Nobody wants to know."""
