"""`scripts/bench [NAME ...] [--json FILE] [--list]`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path

from tests.bench.harness import BENCHES, Result, report

# Minutes, not seconds: only by name.
_LONG = {"soak", "viewers_memory"}


def main() -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as livefuse itself does
    for module in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        importlib.import_module(f"tests.bench.{module.stem}")  # each registers its benches
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all but the long ones")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(BENCHES))
        return 0
    names = arguments.names or [name for name in BENCHES if name not in _LONG]
    if unknown := [name for name in names if name not in BENCHES]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(BENCHES)}")
    results: dict[str, Result] = {}
    for measure in dict.fromkeys(BENCHES[name] for name in names):
        wanted = [name for name in names if BENCHES[name] is measure]
        print(f"measuring {', '.join(wanted)} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="livefuse-bench-") as folder:
            found = measure(Path(folder))
        results |= {name: found[name] for name in wanted}
    return report(results, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
