"""The ladder: which rung holds, and why.

Two means, as measured against others in tests/governor:

    the ladder   slow. Predicts what each rung needs from averages of the stages' costs, goes down
                 straight to the rung that fits, up one at a time and with growing patience
    the frame    fast. Skips enhance on a frame that would come late

Down when need > 0.92 of the budget for 150 ms; a standing queue (its smallest delay over 200 ms
above 40 ms) is one more rung down. Rungs that a viewer sees at once (half the frames, the whole
cover) are taken for a standing queue only, a second after the rung before. Up when the rung above
needs < 0.80 and 3 s have passed; an upgrade that does not hold for 6 s doubles that wait, to 30 s
at most, halved after 30 quiet seconds.

What presses beside time (memory, heat, a battery) costs a mild rung at once and another each 5 s
while it lasts; up again when it has been gone for 10 s.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from livefuse.clock import NS_PER_MS, NS_PER_S
from livefuse.governor.costs import Costs
from livefuse.governor.sounding import Sounding

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from livefuse.config import GovernorConfig, Rung

_DOWN_AT: Final = 0.92
_DOWN_AFTER_NS: Final = 150 * NS_PER_MS
_UP_AT: Final = 0.80
_UP_AFTER_NS: Final = 3 * NS_PER_S
_UP_AFTER_MAX_NS: Final = 30 * NS_PER_S
_MUST_HOLD_NS: Final = 6 * NS_PER_S
_QUIET_NS: Final = 30 * NS_PER_S
_QUEUE_WINDOW_NS: Final = 200 * NS_PER_MS
_QUEUE_LIMIT_MS: Final = 40.0
_LATE_FRAMES: Final = 2.0
_HARSH_AFTER_NS: Final = NS_PER_S
_PRESSURE_EVERY_NS: Final = 5 * NS_PER_S
_PRESSURE_GONE_NS: Final = 10 * NS_PER_S
PRESSURES: Final = ("memory_constrained", "gpu_memory", "thermal", "low_power")
"""What may press beside `deadline` and `queue_delay`, the most urgent first."""
_SETTLE_NS: Final = 500 * NS_PER_MS  # the first frames of a stream are slow
_SOUNDED: Final = "enhance"  # the one stage that a rung switches off


class Decision(NamedTuple):
    """Which rung holds, and why it changed with this frame; `reason` is empty when it did not.

    `must_sound`: the next frame is to do the work that the rung spares, once and unseen.
    """

    rung: int
    reason: str = ""
    is_downgrade: bool = False
    must_sound: bool = False


class GovernorStatistics(NamedTuple):
    """Counts since the start."""

    rung: int
    name: str
    downgrades: int
    upgrades: int


class Governor:
    """One job's ladder. One thread; `rungs` run from everything (0) to the least."""

    def __init__(
        self,
        config: GovernorConfig,
        frame_ms: float,
        part_of: Mapping[str, int] | None = None,
        look_every: int = 3,
    ) -> None:
        """`frame_ms` is the time between two frames of the source: the budget of each.

        `part_of` tells which stages share a thread (their costs add up) and which work at the same
        time on different frames; without it all share one. `look_every`: how often faces are
        looked for when nothing is spared.
        """
        self._rungs: Sequence[Rung] = config.rungs
        self._frame_ms = frame_ms
        self._costs = Costs(config.rungs, part_of or {}, look_every)
        self._sounding = Sounding()
        self._late_frames = _count_late_frames(part_of or {})
        self._first_ns: int | None = None
        self._rung = 0
        self._over_since_ns: int | None = None
        self._changed_ns: int | None = None
        self._upgraded_ns: int | None = None
        self._wait_ns = _UP_AFTER_NS
        self._delays: deque[tuple[int, float]] = deque()
        self._pressed_ns: int | None = None  # when something last pressed
        self._gave_way_ns: int | None = None  # when a rung was last given for it
        self._downgrades = self._upgrades = 0

    @property
    def rung(self) -> int:
        """The rung that holds."""
        return self._rung

    def statistics(self) -> GovernorStatistics:
        """Return a snapshot."""
        name = self._rungs[self._rung].name
        return GovernorStatistics(self._rung, name, self._downgrades, self._upgrades)

    def set_stages(self, stages: Collection[str], part_of: Mapping[str, int]) -> None:
        """Take note that other stages work on frames from now on; see `part_of` above."""
        self._costs.keep_only(stages, part_of)
        self._late_frames = _count_late_frames(part_of)

    def note_frame(
        self, now_ns: int, costs_ms: Mapping[str, float], queue_delay_ms: float
    ) -> Decision:
        """Take what a frame cost, by stage, and how long it had waited; decide for the next.

        A stage that did not run is left out of `costs_ms`: `detect` only when the network looked.
        """
        if self._first_ns is None:
            self._first_ns = now_ns
        if now_ns - self._first_ns >= _SETTLE_NS:
            for stage, cost_ms in costs_ms.items():
                self._note_cost(now_ns, stage, cost_ms)
        self._note_delay(now_ns, queue_delay_ms)
        if self._changed_ns is None:
            self._changed_ns = now_ns
        self._calm_down(now_ns)
        reason = self._find_overload(now_ns)
        if reason:
            return self._go_down(now_ns, reason)
        if self._may_go_up(now_ns):
            return self._go_up(now_ns)
        return Decision(self._rung, must_sound=self._must_sound(now_ns))

    def note_pressure(self, now_ns: int, reasons: Collection[str]) -> Decision:
        """Take what presses just now beside time, of `PRESSURES`; nothing: `reasons` is empty.

        Never goes further than the mildest rung that a viewer would not see at once: half the
        frames neither cool a machine nor free its memory enough to be worth it.
        """
        if not reasons:
            return Decision(self._rung)
        self._pressed_ns = now_ns
        gave_way_ns = self._gave_way_ns
        if gave_way_ns is not None and now_ns - gave_way_ns < _PRESSURE_EVERY_NS:
            return Decision(self._rung)
        below = self._rung + 1
        if below == len(self._rungs) or _is_harsh(self._rungs[below]):
            return Decision(self._rung)
        self._gave_way_ns = now_ns
        return self._go_down(now_ns, min(reasons, key=_rank_pressure))

    def must_skip_enhance(self, delay_ms: float) -> bool:
        """Say whether a frame that is `delay_ms` old would come late with its enhance."""
        return delay_ms + self._costs.get_service_ms() > self._late_frames * self._frame_ms

    def predict_ms(self, rung: int) -> float:
        """Return what a frame needs on `rung` of the busiest thread, by the averages so far."""
        return self._costs.predict_ms(rung)

    def _note_cost(self, now_ns: int, stage: str, cost_ms: float) -> None:
        if stage != _SOUNDED or not self._sounding.is_off:
            self._costs.note(self._rung, stage, cost_ms)
        elif self._sounding.is_asked:
            need_ms = self._costs.predict_ms(self._rung - 1, {stage: cost_ms})
            fits = need_ms < _UP_AT * self._frame_ms
            believed_ms = self._sounding.hear(now_ns, cost_ms, fits=fits)
            if believed_ms is not None:
                self._costs.replace(stage, believed_ms)

    def _must_sound(self, now_ns: int) -> bool:
        """Say whether only an old figure keeps the rung above away, and it is time to renew it."""
        if not self._sounding.is_off or not self._rungs[self._rung - 1].enhance_share:
            return False
        # Nothing is tried in a queue, nor for what something else keeps away.
        if self._is_pressed(now_ns) or self._delays[-1][1] > self._frame_ms:
            return False
        need_ms = self._costs.predict_ms(self._rung - 1, {_SOUNDED: 0.0})
        return need_ms < _UP_AT * self._frame_ms and self._sounding.ask(now_ns)

    def _note_delay(self, now_ns: int, delay_ms: float) -> None:
        self._delays.append((now_ns, delay_ms))
        # One that is older than the window stays: frames may come more rarely than that.
        while len(self._delays) > 1 and now_ns - self._delays[1][0] >= _QUEUE_WINDOW_NS:
            self._delays.popleft()

    def _find_overload(self, now_ns: int) -> str:
        if self._rung == len(self._rungs) - 1:
            return ""
        if _is_harsh(self._rungs[self._rung + 1]):
            # Half the frames are worse than a few that come late: what is predicted is not enough.
            must_wait = now_ns - (self._changed_ns or 0) < _HARSH_AFTER_NS
            return "queue_delay" if not must_wait and self._has_standing_queue(now_ns) else ""
        if self.predict_ms(self._rung) <= _DOWN_AT * self._frame_ms:
            self._over_since_ns = None
        elif self._over_since_ns is None:
            self._over_since_ns = now_ns
        elif now_ns - self._over_since_ns >= _DOWN_AFTER_NS:
            return "deadline"
        return "queue_delay" if self._has_standing_queue(now_ns) else ""

    def _has_standing_queue(self, now_ns: int) -> bool:
        is_whole = now_ns - self._delays[0][0] >= _QUEUE_WINDOW_NS * 0.8
        return is_whole and min(delay for _, delay in self._delays) > _QUEUE_LIMIT_MS

    def _go_down(self, now_ns: int, reason: str) -> Decision:
        target = self._rung + 1
        if reason == "deadline":
            # What a viewer would see at once is never taken for what is predicted.
            mild = [r for r in range(target, len(self._rungs)) if not _is_harsh(self._rungs[r])]
            fits = (r for r in mild if self.predict_ms(r) <= _DOWN_AT * self._frame_ms)
            target = next(fits, mild[-1])
        if self._upgraded_ns is not None and now_ns - self._upgraded_ns < _MUST_HOLD_NS:
            self._wait_ns = min(2 * self._wait_ns, _UP_AFTER_MAX_NS)
        self._upgraded_ns = None
        self._change(now_ns, target)
        self._downgrades += 1
        return Decision(self._rung, reason, is_downgrade=True)

    def _may_go_up(self, now_ns: int) -> bool:
        if self._rung == 0 or self._changed_ns is None:
            return False
        if now_ns - self._changed_ns < self._wait_ns:
            return False
        if self._is_pressed(now_ns):
            return False
        if self._rungs[self._rung].cover_only:
            return True  # nothing is measured here: only a try can tell
        return self.predict_ms(self._rung - 1) < _UP_AT * self._frame_ms

    def _is_pressed(self, now_ns: int) -> bool:
        """Say whether a rung is kept for what pressed lately; a harsh one never is."""
        if self._pressed_ns is None or _is_harsh(self._rungs[self._rung]):
            return False
        return now_ns - self._pressed_ns < _PRESSURE_GONE_NS

    def _go_up(self, now_ns: int) -> Decision:
        if self._rungs[self._rung].cover_only:
            self._costs.forget(self._rung - 1)
        self._change(now_ns, self._rung - 1)
        self._upgraded_ns = now_ns
        self._upgrades += 1
        return Decision(self._rung, "head_room")

    def _change(self, now_ns: int, rung: int) -> None:
        self._rung = rung
        self._changed_ns = now_ns
        if self._rungs[rung].enhance_share:
            self._sounding.stop()
        elif not self._sounding.is_off:
            self._sounding.start(now_ns, self._costs.get_ms(_SOUNDED))
        self._over_since_ns = None
        self._delays.clear()

    def _calm_down(self, now_ns: int) -> None:
        """After a quiet while an upgrade is tried sooner again."""
        if self._changed_ns is not None and now_ns - self._changed_ns >= _QUIET_NS:
            self._wait_ns = max(self._wait_ns // 2, _UP_AFTER_NS)


def _is_harsh(rung: Rung) -> bool:
    """Say whether a viewer would see at once that something is missing."""
    return rung.frame_share < 1.0 or rung.cover_only


def _rank_pressure(reason: str) -> int:
    return PRESSURES.index(reason) if reason in PRESSURES else len(PRESSURES)


def _count_late_frames(part_of: Mapping[str, int]) -> float:
    """Return after how many frames' times a frame is late: several threads take more than one."""
    return max(_LATE_FRAMES, float(len(set(part_of.values()))))
