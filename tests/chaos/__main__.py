"""`scripts/chaos [--minutes M] [--seed N] [--variant blur|avatar] [--only KIND ...] [--quiet]`."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.control import OPERATIONS, ROOT
from tests.chaos.plan import KINDS, LEAD_S, TAIL_S, make_plan
from tests.chaos.run import Outcome, run_chaos
from tests.chaos.sheet import draw_curves, draw_sheet
from tests.chaos.verdict import Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.plan import Fault

OUT = ROOT / "out" / "chaos"


def main() -> int:
    """Run what the command line asks for; return 0 when everything holds."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as livefuse itself does
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="default: another one each time; it is printed")
    parser.add_argument("--variant", choices=list(OPERATIONS), default="blur")
    parser.add_argument("--only", nargs="+", choices=list(KINDS), metavar="KIND")
    parser.add_argument("--quiet", action="store_true", help="no faults: slopes of memory, delay")
    parser.add_argument("--list", action="store_true", help="print the plan and end")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there")
    arguments = parser.parse_args()
    if arguments.quiet:
        from tests.chaos.quiet import run_quiet

        return run_quiet(arguments.minutes, arguments.variant, OUT)
    seed = arguments.seed if arguments.seed is not None else time.monotonic_ns() % 100_000
    seconds = arguments.minutes * 60
    if seconds <= LEAD_S + TAIL_S:
        parser.error(f"--minutes must be above {(LEAD_S + TAIL_S) / 60:.1f}")
    kinds = tuple(arguments.only or KINDS)
    plan = make_plan(seed, seconds, list_operations(arguments.variant), kinds)
    print(f"seed {seed}, {len(plan)} faults in {seconds:.0f} s, {arguments.variant}")
    if arguments.list:
        print("\n".join(f"{f.at_s:8.2f} s  {f.kind} {f.lasts_s:.2f} s {f.details}" for f in plan))
        return 0
    with open_folder(arguments.keep) as folder:
        outcome, verdict = run_and_judge(folder, plan, seconds, arguments.variant)
        write_report(OUT, seed, outcome, verdict)
    print(f"seed {seed}: {'everything holds' if verdict.is_kept() else 'FAILED'}; see {OUT}")
    return 0 if verdict.is_kept() else 1


@contextlib.contextmanager
def open_folder(keep: Path | None) -> Iterator[Path]:
    """Lend a new folder for the recordings: one that goes away again, or a new one at `keep`."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="livefuse-chaos-") as folder:
        yield Path(folder)


def list_operations(variant: str) -> tuple[str, ...]:
    """Return the operations of a variant."""
    return tuple(OPERATIONS[variant][-1].split(","))


def run_and_judge(
    folder: Path, plan: list[Fault], seconds: float, variant: str
) -> tuple[Outcome, Verdict]:
    """Do a run in `folder`, then read everything back."""
    outcome = run_chaos(folder, plan, seconds, variant=variant)
    print("reading back ...", flush=True)
    return outcome, judge(outcome, variant=variant)


def write_report(target: Path, seed: int, outcome: Outcome, verdict: Verdict) -> None:
    """Print the table; write chaos.json, sheet.png, curves.png and livefuse's own log."""
    target.mkdir(parents=True, exist_ok=True)
    print(verdict.format())
    report = {
        "seed": seed,
        "is_kept": verdict.is_kept(),
        "rows": [asdict(row) for row in verdict.rows],
        "faults": [asdict(done) for done in outcome.done],
        "began_s": outcome.began_s,
        "ended_s": outcome.ended_s,
        "threads": outcome.threads,
        "hits": outcome.hits,
        "end": outcome.end,
        "last_status": next((s.status for s in outcome.samples[::-1] if s.status), None),
    }
    (target / "chaos.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    if outcome.log_path is not None:
        (target / "livefuse.log").write_bytes(outcome.log_path.read_bytes())
    if "steady" in verdict.tracks:
        track = verdict.tracks["steady"]
        draw_sheet(outcome, track, outcome.files["steady"][0], target / "sheet.png")
    times = [sample.at_s for sample in outcome.samples]
    arrivals = [at_s for at_s, _ in outcome.arrivals]
    waits = [b - a for a, b in itertools.pairwise(arrivals)]
    curves = {
        "wait for a picture, s": (arrivals[1:], waits),
        "pictures out a second": (
            times,
            [float((sample.status or {}).get("fps_out", 0.0)) for sample in outcome.samples],
        ),
        "well": (times, [float(sample.is_good) for sample in outcome.samples]),
    }
    draw_curves(curves, target / "curves.png")


if __name__ == "__main__":
    sys.exit(main())
