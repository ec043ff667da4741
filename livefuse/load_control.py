"""Between pipeline and governor: what a frame cost goes in, what is to be spared comes out."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from livefuse.governor import SPARED, Governor
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
        parts = {f"{name}{SPARED}": part for name, part in part_of.items()} | dict(part_of)
        self._governor = Governor(config, frame_ms, parts, look_every)
        self._config = config
        self._telemetry = telemetry
        self._log = get_logger("governor")
        self._load = Load(config.rungs[0])
        self._delay_ms = 0.0
        self._due = 0.0
        self._pressures: dict[str, frozenset[str]] = {}
        self._soundings: deque[bool] = deque(maxlen=1)
        self._changes: deque[tuple[str, str]] = deque(maxlen=4)

    @property
    def rung_name(self) -> str:
        """The name of the rung that holds."""
        return self._load.rung.name

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
        if not self._config.enabled:
            return
        # What a step costs when it works is what a rung spares; when it does not is another figure.
        costs = {
            f"{name}{SPARED}" if name in outcome.spared else name: took_ms
            for name, took_ms in outcome.steps
        }
        self._follow(self._governor.note_frame(now_ns, costs, self._delay_ms))
        pressing = frozenset[str]().union(*self._pressures.copy().values())
        self._follow(self._governor.note_pressure(now_ns, pressing))

    def _follow(self, decision: Decision) -> None:
        """Let the frames to come know what was decided."""
        if decision.must_sound:
            self._soundings.append(True)
        if not decision.reason:
            return
        rung = self._config.rungs[decision.rung]
        change = _DOWN if decision.is_downgrade else _UP
        self._changes.append((change, f"{decision.reason}: {rung.name}"))
        self._load = Load(rung)
        self._telemetry.count("downgrades" if decision.is_downgrade else "upgrades")
        self._telemetry.journal.note_rung(rung.name, decision.reason)
        self._log.info("load", rung=rung.name, reason=decision.reason)
