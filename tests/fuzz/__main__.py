"""`python -m tests.fuzz --frames 20000 --seed 1`: exit 1 when a face was bare. See the package."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

import structlog

from tests.fuzz.judge import EXCUSES
from tests.fuzz.plan import make_case, make_plan
from tests.fuzz.run import Result, create_reference, list_rows, run_plan
from tests.fuzz.sheet import write_offence, write_sheet

_MOST_WRITTEN = 60


def main() -> int:
    """Run until so many pictures have been shown."""
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("--frames", type=int, default=20_000, help="pictures to be shown in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each has the next")
    parser.add_argument("--run", type=int, default=600, help="pictures filmed in each run")
    parser.add_argument("--detect-every", type=int, default=1, help="the reference looks at 1 in N")
    parser.add_argument("--case", default="", help="one of C12, C14, C18, C21, C61 instead")
    parser.add_argument("--sheets", type=int, default=6, help="contact sheets of so many runs")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    detector, total, seed = create_reference(), Result(), asked.seed
    is_over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: is_over.append(number))  # after this run
    while not is_over and total.counts["shown"] < (1 if asked.case else asked.frames):
        plan = make_case(asked.case) if asked.case else make_plan(seed, asked.run)
        result = run_plan(plan, detector, detects_every=asked.detect_every)
        if seed - asked.seed < asked.sheets:
            write_sheet(result.pictures, asked.out / f"sheet-{asked.case or seed}.png")
        for number, offence in enumerate(result.offences[:_MOST_WRITTEN]):
            path = asked.out / f"bare-{asked.case or seed}-{offence.index}-{number}.png"
            write_offence(offence, path)
            print(f"seed {seed} frame {offence.index}: {offence.what}\n    see {path}")
        total.add(result)
        counts = result.counts
        excused = ", ".join(f"{kind} {counts[kind]}" for kind in EXCUSES if counts[kind])
        print(
            f"seed {seed}: {counts['shown']} shown, {counts['faces promised']} faces to be hidden, "
            f"{counts['BARE']} bare ({excused}); in all {total.counts['shown']}  "
            f"{result.digest[:12]}",
            flush=True,
        )
        seed += 1
    print("\n".join(list_rows(total)))
    return 1 if total.counts["BARE"] else 0


if __name__ == "__main__":
    sys.exit(main())
