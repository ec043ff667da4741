"""One pipeline at work, from the first ring to the second: what is made anew when it breaks.

The job's stages (pool, second ring, encode, sound, outputs) outlive it. When a step hangs, this
treatment is abandoned and another takes its place: the frames that it held are replaced, and what
its threads give back later is refused, never shown.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.job.watchdog import Pulse
from livefuse.pipeline.conveyor import MAX_PARTS, Conveyor
from livefuse.pipeline.state import NO_CONSENT, Load
from livefuse.ring import Ring, RingClosed
from livefuse.telemetry import get_logger
from livefuse.token import COVERING, GENERATING, HIDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config
    from livefuse.frame import Frame, FramePool
    from livefuse.job.load_control import LoadControl
    from livefuse.pipeline.state import Outcome
    from livefuse.pipeline.steps import Pipeline
    from livefuse.telemetry import Telemetry
    from livefuse.token import Token, TokenCell

PART: Final = "pipeline"


@dataclass(slots=True, frozen=True)
class Setting:
    """What stands around a treatment and outlives it. `load` is None where nothing is spared."""

    config: Config
    telemetry: Telemetry
    pool: FramePool
    treated: Ring[Frame]
    load: LoadControl | None


class Treatment:
    """A pipeline, its conveyor and the loops of its parts. Made without threads."""

    def __init__(
        self, setting: Setting, arrived: Ring[Frame], pipeline: Pipeline, token: TokenCell
    ) -> None:
        self.pipeline = pipeline
        self.faces = 0
        self.last_token: Token | None = None
        self._pool = setting.pool
        self._treated = setting.treated
        self._load = setting.load
        self._telemetry = setting.telemetry
        self._clock = setting.telemetry.clock
        self._arrived = arrived
        self._token = token
        self._conveyor = Conveyor(
            pipeline,
            count_parts(setting.config),
            self._take,
            self._give,
            self._clock.create_condition,
            self._note_work,
        )
        limit_ns = setting.config.watchdog.step_limit_ms * NS_PER_MS
        names = [f"{PART}-{index + 1}" if index else PART for index in range(self._conveyor.parts)]
        self.pulses = [Pulse(name, self._clock, limit_ns) for name in names]
        for pulse in self.pulses:
            pulse.has_worked = True  # the steps were warmed up: their first frame costs no more
        self._lock = threading.Lock()
        self._held: dict[int, Frame] = {}
        self._is_abandoned = False
        self._told_ns, self._told = -NS_PER_S, ""
        self._log = get_logger("stages")

    def list_loops(self) -> dict[str, Callable[[], None]]:
        """Return what the threads of the parts run, by name, in the order of a frame's way."""
        return {
            pulse.name: partial(self._run_part, index) for index, pulse in enumerate(self.pulses)
        }

    def abandon(self) -> None:
        """Let nothing of it be seen any more, and give the pool new frames for those it holds.

        From any thread; what hangs in a step is not waited for.
        """
        with self._lock:
            self._is_abandoned = True
            held, self._held = list(self._held.values()), {}
        for frame in self._arrived.close(discard=True):
            self.drop(frame, "restarting")
        for frame in held:
            self._telemetry.count("dropped_abandoned")
            self._telemetry.journal.note_drop(frame, "abandoned")
            self._pool.replace(frame)
        self._conveyor.close()

    def close(self) -> None:
        """End the side work; parts that wait for one another end too. From any thread."""
        self._conveyor.close()

    def may_show(self) -> bool:
        """Say whether the last picture may be shown again: its source, and what is asked for now.

        A picture stands for as long as its input is away; who asks meanwhile that more be hidden
        must not have to wait for the next one. From any thread.
        """
        shown = self.last_token
        if shown is None:
            return True
        return not hides_more(self._token.get(), shown) and self.pipeline.may_show(shown)

    def drop(self, frame: Frame, reason: str) -> None:
        """Give `frame` back to the pool, unseen."""
        with self._lock:
            self._held.pop(id(frame), None)
        self._telemetry.count(f"dropped_{reason}")
        self._telemetry.journal.note_drop(frame, reason)
        self._pool.release(frame)

    def _run_part(self, index: int) -> None:
        """Edit frames in place, oldest first, until the input has ended."""
        try:
            self._conveyor.run_part(index)
        except RingClosed:
            is_last = index == self._conveyor.parts - 1
            if is_last and self._arrived.is_closed and not self._is_abandoned:
                self._treated.close()
                self._conveyor.close()
            raise
        finally:
            self.pulses[index].end()

    def _note_work(self, index: int, work: str) -> None:
        if work:
            self.pulses[index].begin(work)
        else:
            self.pulses[index].end()

    def _take(self) -> tuple[Frame, Token, Load]:
        """Wait for the next frame that is to be treated, and what is to be spared on it."""
        while True:
            frame = self._arrived.take()
            self._hold(frame)
            # Not since its packet came: where pictures are reordered that is no queue of ours.
            since_ns = max(frame.arrival_ns, frame.ready_ns)
            age_ms = (self._clock.now_ns() - since_ns) / NS_PER_MS
            self._telemetry.observe_step("queue", age_ms)
            load = self._load.take(age_ms) if self._load is not None else Load()
            if load is not None:
                return frame, self._token.lease(self._clock.epoch_s()), load
            self.drop(frame, "half_rate")

    def _hold(self, frame: Frame) -> None:
        """Note that `frame` is in our hands, unless we are abandoned already."""
        with self._lock:
            if not self._is_abandoned:
                self._held[id(frame)] = frame
                return
        self.drop(frame, "restarting")
        raise RingClosed

    def _give(self, frame: Frame, outcome: Outcome) -> None:
        with self._lock:
            if self._is_abandoned:
                self._telemetry.count("refused_late_frames")
                raise RingClosed
            del self._held[id(frame)]
        self._note_outcome(frame, outcome)
        try:
            self._treated.put(frame)
        except RingClosed:
            self._pool.release(frame)
            raise

    def _note_outcome(self, frame: Frame, outcome: Outcome) -> None:
        for step, took_ms in outcome.steps:
            self._telemetry.observe_step(step, took_ms)
        if self._load is not None:
            self._load.note(self._clock.now_ns(), outcome)
        self.faces = len(outcome.faces)
        self.last_token = outcome.token
        self._telemetry.journal.note_outcome(frame, outcome)
        withheld = outcome.error if outcome.reason == NO_CONSENT else ""
        self._telemetry.note_outcome(failed=bool(outcome.error), withheld=withheld)
        if outcome.covered_whole:
            self._telemetry.count(f"covered_{outcome.reason}")
        if outcome.error:
            self._tell_failure(outcome)
        else:
            self._told = ""

    def _tell_failure(self, outcome: Outcome) -> None:
        """Log why a frame may not be seen, at most once a second: the counters have them all."""
        if outcome.token.parameters.on_failure == "alert":
            self._telemetry.count("alerts")
        now_ns = self._clock.now_ns()
        is_due = now_ns - self._told_ns >= NS_PER_S
        # A consent that is gone stays gone: that is said once, not each second.
        is_news = outcome.reason != NO_CONSENT or self._told != outcome.error
        if is_due and is_news:
            self._told_ns, self._told = now_ns, outcome.error
            fate = "the frame is covered" if outcome.covered_whole else "the frame goes on as it is"
            what = "no consent" if outcome.reason == NO_CONSENT else "a step failed"
            self._log.warning(f"{what}, {fate}", cause=outcome.error)


def hides_more(now: Token, shown: Token) -> bool:
    """Say whether `now` may hide something that a picture made by `shown` lets be seen."""
    asked, had = now.parameters, shown.parameters
    operations = set(now.operations)
    if operations & HIDING - set(shown.operations):
        return True
    others = (asked.select, asked.people, asked.blur_whom) != (
        had.select,
        had.people,
        had.blur_whom,
    )
    if others and operations & COVERING:
        return True
    return bool(operations & GENERATING) and asked.blend_ratio > had.blend_ratio


def count_parts(config: Config) -> int:
    """Return into how many parts a pipeline is cut."""
    return min(config.pipeline.execution_threads, MAX_PARTS)
