"""Between pipeline and governor: what a frame cost goes in, what is to be spared comes out."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final

from livefuse.clock import NS_PER_S
from livefuse.governor import SPARED, Governor
from livefuse.pipeline.conveyor import is_light
from livefuse.pipeline.state import Load
from livefuse.telemetry import get_logger

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from livefuse.config import GovernorConfig
    from livefuse.governor import Decision
    from livefuse.pipeline.state import Outcome
    from livefuse.telemetry import Telemetry

_DOWN: Final = "downgraded_for_performance"
_UP: Final = "upgraded_for_performance"
_ROUNDING: Final = 1e-6


class LoadControl:
    """One job's. The decision is one reference, replaced by the last part, read by the first."""

    def __init__(
        self,
        config: GovernorConfig,
        frame_ms: float,
        part_of: Mapping[str, int],
        telemetry: Telemetry,
        look_every: int,
    ) -> None:
        self._part_of = part_of
        self._operations: tuple[str, ...] = ()
        self._governor = Governor(config, frame_ms, _add_spared(part_of), look_every)
        self._config = config
        self._telemetry = telemetry
        self._log = get_logger("governor")
        self._load = Load(config.rungs[0])
        self._delay_ms = 0.0
        self._due = 0.0
        self._pressures: dict[str, frozenset[str]] = {}
        self._soundings: deque[bool] = deque(maxlen=1)
        self._changes: deque[tuple[str, str]] = deque(maxlen=4)
        self._by_reason: Counter[str] = Counter()
        self._rung_ns: Counter[str] = Counter()
        self._since_ns = telemetry.clock.now_ns()
        self._enhanced = self._bare = 0

    @property
    def rung_name(self) -> str:
        """The name of the rung that holds."""
        return self._load.rung.name

    def describe(self) -> dict[str, Any]:
        """Return what status shows of load. Any thread.

        `rung_index` counts from 0, everything. `changes` are counted by reason, `rung_seconds` are
        what was spent on each rung. `enhanced_frames` show an enhanced face, `not_enhanced_frames`
        one that should be; `enhanced_share` is the former's part, None where there is none.
        """
        lasts_ns = self._telemetry.clock.now_ns() - self._since_ns
        seconds = self._rung_ns.copy()
        seconds[self.rung_name] += lasts_ns
        enhanced, bare = self._enhanced, self._bare
        return {
            "rung_index": self._config.rungs.index(self._load.rung),
            "changes": dict(self._by_reason.copy()),
            "rung_seconds": {name: round(ns / NS_PER_S, 3) for name, ns in seconds.items()},
            "enhanced_frames": enhanced,
            "not_enhanced_frames": bare,
            "enhanced_share": round(enhanced / (enhanced + bare), 4) if enhanced + bare else None,
            "pressures": sorted(self._list_pressures()),
        }

    @property
    def covers_all(self) -> bool:
        """Whether the rung that holds covers every picture whole."""
        return self._load.rung.cover_only

    def note_pressure(self, source: str, reasons: Collection[str]) -> None:
        """Take what `source` says presses from now on, of `governor.PRESSURES`; empty: nothing.

        From any thread: it is seen with the next frame. Each source speaks for itself alone.
        """
        self._pressures[source] = frozenset(reasons)

    def take(self, age_ms: float) -> Load | None:
        """Return what is to be spared on the next frame, `age_ms` old; None: leave it out.

        From the thread of the pipeline's first part.
        """
        self._delay_ms = age_ms
        load = self._load
        self._due += load.rung.frame_share
        if self._due < 1.0 - _ROUNDING:
            return None
        self._due -= 1.0
        change, reason = self._changes.popleft() if self._changes else ("", "")
        is_late = self._config.enabled and self._governor.must_skip_enhance(age_ms)
        is_sounding = bool(self._soundings) and self._soundings.popleft()
        return load._replace(is_late=is_late, change=change, reason=reason, is_sounding=is_sounding)

    def note(self, now_ns: int, outcome: Outcome) -> None:
        """Take what a frame cost and decide for the next. From the last part's thread."""
        self._enhanced += outcome.is_enhanced is True
        self._bare += outcome.is_enhanced is False
        if not self._config.enabled:
            return
        self._follow_operations(outcome.token.operations)
        # What a step costs when it works is what a rung spares; when it does not is another figure.
        costs = {
            f"{name}{SPARED}" if name in outcome.spared else name: took_ms
            for name, took_ms in outcome.steps
        }
        self._follow(now_ns, self._governor.note_frame(now_ns, costs, self._delay_ms))
        pressing = self._list_pressures()
        self._follow(now_ns, self._governor.note_pressure(now_ns, pressing))

    def _follow_operations(self, operations: tuple[str, ...]) -> None:
        """Judge by what is done now, not by what an operation cost that has been switched off."""
        if operations == self._operations:
            return
        self._operations = operations
        part_of = dict.fromkeys(operations, 0) if is_light(operations) else self._part_of
        self._governor.set_stages(operations, _add_spared(part_of))

    def _list_pressures(self) -> frozenset[str]:
        return frozenset[str]().union(*self._pressures.copy().values())

    def _follow(self, now_ns: int, decision: Decision) -> None:
        """Let the frames to come know what was decided."""
        if decision.must_sound:
            self._soundings.append(True)
        if not decision.reason:
            return
        rung = self._config.rungs[decision.rung]
        change = _DOWN if decision.is_downgrade else _UP
        self._changes.append((change, f"{decision.reason}: {rung.name}"))
        self._by_reason[decision.reason] += 1
        self._rung_ns[self.rung_name] += now_ns - self._since_ns
        self._since_ns = now_ns
        self._load = Load(rung)
        self._telemetry.count("downgrades" if decision.is_downgrade else "upgrades")
        self._telemetry.journal.note_rung(rung.name, decision.reason)
        self._log.info("load", rung=rung.name, reason=decision.reason)


def _add_spared(part_of: Mapping[str, int]) -> dict[str, int]:
    return {f"{name}{SPARED}": part for name, part in part_of.items()} | dict(part_of)
