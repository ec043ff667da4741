"""One run from its plan to what the judge says, and the table over many."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from livefuse.config import Config
from livefuse.pipeline.analysis.detect_step import create_detector
from tests.faces import share_sessions
from tests.fuzz.faults import Faults
from tests.fuzz.judge import EXCUSES, Judge, Offence
from tests.fuzz.rig import Rig

if TYPE_CHECKING:
    import numpy as np

    from livefuse.frame import Frame
    from livefuse.pipeline.analysis.detect import Detector
    from livefuse.pipeline.state import Outcome
    from tests.fuzz.judge import Truth
    from tests.fuzz.plan import Plan

_MOST_PICTURES = 48
_SAMPLE_EVERY = 23


@dataclass
class Result:
    """What became of one run, or of several: `digest` is of all pictures shown, in order."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    longest: Counter[str] = field(default_factory=Counter)
    offences: list[Offence] = field(default_factory=list)
    most_like: dict[str, float] = field(default_factory=dict)
    pictures: list[tuple[str, np.ndarray[Any, Any]]] = field(default_factory=list)
    digest: str = ""

    def add(self, other: Result) -> None:
        """Take another run in."""
        self.counts += other.counts
        self.faults += other.faults
        self.longest |= other.longest
        self.offences += other.offences
        for kind, likeness in other.most_like.items():
            self.most_like[kind] = max(self.most_like.get(kind, 0.0), likeness)


def create_reference() -> Detector:
    """Return CenterFace at 640 px, or the picture's own size, in a place of its own."""
    return create_detector(Config(), share_sessions(), every_frame=True)


def run_plan(plan: Plan, detector: Detector, *, detects_every: int = 1) -> Result:
    """Run it, and judge every picture; the reference detector looks at one in `detects_every`."""
    faults = Faults(plan)
    judge = Judge(plan.seed, faults, detector, detects_every)
    result = Result(judge.counts, faults.done, judge.longest, judge.offences)
    hashed = hashlib.blake2b(digest_size=16)

    def keep(frame: Frame, truth: Truth, outcome: Outcome, is_held: bool) -> None:
        hashed.update(frame.buffer.data)
        is_due = judge.counts["shown"] % _SAMPLE_EVERY == 0
        if is_due and len(result.pictures) < _MOST_PICTURES:
            why = "held" if is_held else outcome.reason or _tell_asked(outcome)
            result.pictures.append((f"{truth.index} {why}", frame.buffer.copy()))

    judge.on_shown = keep
    with faults.install():
        Rig(plan, faults, judge).run()
    result.most_like = {kind: max(values) for kind, values in judge.likeness.items()}
    result.digest = hashed.hexdigest()
    return result


def _tell_asked(outcome: Outcome) -> str:
    token = outcome.token
    whom = token.parameters.blur_whom if "blur" in token.operations else ""
    return f"{'+'.join(token.operations[-2:])} {whom.replace('auto', '')}"


def list_rows(result: Result) -> list[str]:
    """Return the table: pictures, faces, what the reference found, what went wrong."""
    counts = result.counts
    rows = [
        f"pictures shown          {counts['shown']:>7}   held {counts['held']}",
        f"  covered whole         {counts['covered_whole']:>7}",
        f"  covered whole because {_join(counts, 'because ')}",
        f"dropped                 {_join(counts, 'dropped ')}",
        f"faces to be hidden      {counts['faces promised']:>7}",
        f"  hardly in the picture {counts['faces hardly there']:>7}",
        f"  may be seen           {counts['faces not promised']:>7}",
    ]
    rows += [
        f"  bare, {kind:<16}{counts[kind]:>7}   at most {result.longest[kind]} in a row"
        for kind in EXCUSES
    ]
    like = ", ".join(f"{kind} {value:.2f}" for kind, value in sorted(result.most_like.items()))
    return [
        *rows,
        f"most like their own     {like}",
        f"reference looked at     {counts['looked at by the reference']:>7}   found "
        + _join(counts, "reference: "),
        "faults met              " + _join(result.faults, ""),
        f"done to the job         {_join(counts, 'hand ')}; rungs {_join(counts, 'rung ')}",
        f"BARE                    {counts['BARE']:>7}",
    ]


def _join(counts: Counter[str], prefix: str) -> str:
    return ", ".join(
        f"{name.removeprefix(prefix)} {count}"
        for name, count in sorted(counts.items())
        if name.startswith(prefix)
    )
