"""Writes down what became of each frame, and why: the journal of a replay, and its report.

Nothing in it comes from the wall clock or the machine: with the same input, costs and
configuration two reports are equal byte for byte.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from livefuse.clock import NS_PER_MS
from livefuse.telemetry import Journal
from livefuse.virtual import Costs

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from livefuse.clock import Clock
    from livefuse.frame import Frame, FrameHandle
    from livefuse.ingest.base import InputState
    from livefuse.pipeline.state import Outcome
    from livefuse.telemetry import Telemetry

Fate = Literal["", "shown", "dropped", "held"]
MAX_FRAMES: Final = 200_000
"""Two hours at 30 fps; of later ones only the sums are kept."""
_HASH_BYTES: Final = 16
_LOAD_CHANGES: Final = "_for_performance"


class FrameDecision(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One frame, in the order in which they came; a held picture stands where it was shown again.

    `pts` is in 1/90000 s on the job's line, None for one that found no place in the pool; `at_ms`
    is when it came, of a held one when it was shown again. `fate` is empty when the replay ended
    before. `done` are the operations that did their whole work, `spared` those that did less.
    `token` is what its token went through. `left` numbers the pictures in the order in which they
    left. `shown_pts` says where on the line it was shown if not at `pts`; `age_ms` how old it was
    then. `picture` is the BLAKE2b hash, 16 bytes, of the planes
    Y, U, V as shown, marks and all.
    """

    number: int = 0
    pts: int | None = None
    at_ms: float = 0.0
    fate: Fate = ""
    reason: str = ""
    rung: str = ""
    done: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    token: tuple[str, ...] = ()
    faces: int = 0
    covered: str = ""
    error: str = ""
    left: int = 0
    shown_pts: int | None = None
    age_ms: float = 0.0
    picture: str = ""


class RungChange(msgspec.Struct, frozen=True, kw_only=True):
    """From `at_ms` on this rung holds, because of `reason`."""

    at_ms: float
    rung: str
    reason: str


class InputChange(msgspec.Struct, frozen=True, kw_only=True):
    """From `at_ms` on the input is in this state."""

    at_ms: float
    state: str


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of a replay, and the costs it was made with: it can be given as costs again."""

    recording: dict[str, Any]
    job: dict[str, Any]
    summary: dict[str, Any]
    rungs: tuple[RungChange, ...]
    input: tuple[InputChange, ...]
    frames: tuple[FrameDecision, ...]
    costs: Costs


class DecisionJournal(Journal):
    """A `Journal` that remembers. Times count from its making."""

    def __init__(
        self,
        clock: Clock,
        unmeasured: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """`unmeasured` surrounds what is done for the journal's sake only."""
        self.frames: list[FrameDecision] = []
        self.rungs: list[RungChange] = []
        self.input: list[InputChange] = []
        self.fates: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.covered: Counter[str] = Counter()
        self._clock = clock
        self._started_ns = clock.now_ns()
        self._unmeasured = unmeasured
        self._open: dict[FrameHandle, FrameDecision] = {}
        self._arrived = self._left = 0

    @property
    def now_ms(self) -> float:
        """The time since the start, in ms."""
        return self._to_ms(self._clock.now_ns())

    def note_input(self, state: InputState) -> None:
        """The input has come to `state`."""
        if not self.input or self.input[-1].state != state:
            self.input.append(InputChange(at_ms=self.now_ms, state=state))

    def note_arrived(self, frame: Frame) -> None:
        """`frame` has been decoded and goes to the pipeline."""
        self._arrived += 1
        decision = FrameDecision(
            number=self._arrived, pts=frame.pts, at_ms=self._to_ms(frame.arrival_ns)
        )
        self._open[frame.handle] = decision
        self._keep(decision)

    def note_missed(self, reason: str) -> None:
        """A frame was decoded for which there was no place."""
        self._arrived += 1
        decision = FrameDecision(number=self._arrived, at_ms=self.now_ms)
        self._keep(decision)
        self._drop(decision, reason)

    def note_drop(self, frame: Frame, reason: str) -> None:
        """`frame` will not be shown."""
        decision = self._open.pop(frame.handle, None)
        if decision is not None:
            self._drop(decision, reason)

    def note_outcome(self, frame: Frame, outcome: Outcome) -> None:
        """`frame` has been treated."""
        decision = self._open.get(frame.handle)
        if decision is None:
            return
        decision.rung = outcome.rung
        decision.done = tuple(name for name, _ in outcome.steps if name not in outcome.spared)
        decision.spared = tuple(name for name, _ in outcome.steps if name in outcome.spared)
        decision.token = tuple(
            f"{entry.state} ({entry.reason})"
            if entry.state.endswith(_LOAD_CHANGES)
            else entry.state
            for entry in outcome.token.log
        )
        decision.faces = len(outcome.faces)
        decision.error = outcome.error
        if outcome.covered_whole:
            decision.covered = outcome.reason
            self.covered[outcome.reason] += 1

    def note_rung(self, name: str, reason: str) -> None:
        """The governor goes to another rung."""
        self.rungs.append(RungChange(at_ms=self.now_ms, rung=name, reason=reason))

    def note_shown(self, frame: Frame, *, is_held: bool) -> None:
        """`frame` is about to be encoded; `is_held`: once more."""
        with self._unmeasured():
            frame.fill_planes()  # the same picture, whose planes nobody may have wanted so far
            picture = hashlib.blake2b(frame.buffer.data, digest_size=_HASH_BYTES).hexdigest()
        self._left += 1
        if is_held:
            self.fates["held"] += 1
            decision = FrameDecision(
                fate="held", pts=frame.pts, at_ms=self.now_ms, left=self._left, picture=picture
            )
            self._keep(decision)
            return
        shown = self._open.pop(frame.handle, None)
        if shown is None:
            return
        self.fates["shown"] += 1
        shown.fate, shown.left, shown.picture = "shown", self._left, picture
        shown.age_ms = _round_ms(self._clock.now_ns() - frame.arrival_ns)
        if frame.pts != shown.pts:
            shown.shown_pts = frame.pts

    def summarise(self, telemetry: Telemetry, first_rung: str) -> dict[str, Any]:
        """Return the sums; `first_rung` is the one that held at the start."""
        end_ms = self.now_ms
        return {
            "seconds": round(end_ms / 1000, 3),
            "frames_in": self._arrived,
            "shown": self.fates["shown"],
            "held": self.fates["held"],
            "dropped": dict(sorted(self.reasons.items())),
            "covered": dict(sorted(self.covered.items())),
            "latency_ms": _describe_latency(telemetry),
            "rung_changes": len(self.rungs),
            "rung_s": self._sum_rungs(first_rung, end_ms),
            "counts": dict(sorted(telemetry.counts().items())),
        }

    def _sum_rungs(self, first_rung: str, end_ms: float) -> dict[str, float]:
        """Return how many seconds each rung held, in the order in which they were met."""
        seconds: dict[str, float] = {}
        names = [first_rung, *(change.rung for change in self.rungs)]
        starts_ms = [0.0, *(change.at_ms for change in self.rungs)]
        for name, start_ms, until_ms in zip(
            names, starts_ms, [*starts_ms[1:], end_ms], strict=True
        ):
            seconds[name] = seconds.get(name, 0.0) + (until_ms - start_ms) / 1000
        return {name: round(value, 3) for name, value in seconds.items() if name}

    def _drop(self, decision: FrameDecision, reason: str) -> None:
        decision.fate, decision.reason = "dropped", reason
        self.fates["dropped"] += 1
        self.reasons[reason] += 1

    def _keep(self, decision: FrameDecision) -> None:
        if len(self.frames) < MAX_FRAMES:
            self.frames.append(decision)

    def _to_ms(self, moment_ns: int) -> float:
        return _round_ms(moment_ns - self._started_ns)


def format_report(report: ReplayReport) -> bytes:
    """Return the report as JSON, an entry of a list on each line, the same for the same report."""
    parts = []
    for name in report.__struct_fields__:
        value = getattr(report, name)
        parts.append(f"{msgspec.json.encode(name).decode()}: {_format_value(value)}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _format_value(value: object) -> str:
    if isinstance(value, tuple) and value:
        return "[\n" + ",\n".join(msgspec.json.encode(item).decode() for item in value) + "\n]"
    if isinstance(value, dict):
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return msgspec.json.encode(value).decode()


def _describe_latency(telemetry: Telemetry) -> dict[str, float]:
    latency = telemetry.latency.overall()
    return {"p50": latency.p50_ms, "p95": latency.p95_ms, "p99": latency.p99_ms}


def _round_ms(duration_ns: int) -> float:
    return round(duration_ns / NS_PER_MS, 3)
