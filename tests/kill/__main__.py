"""`python -m tests.kill --rounds 50 --seed 7`: see `tests.kill`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.kill.rounds import play


def main() -> None:
    """Play, and print a line for each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="livefuse-kill-") as folder:
        outcome = play(
            Path(folder), options.rounds, options.seed, lambda line: print(line, flush=True)
        )
    print(outcome.describe())


if __name__ == "__main__":
    main()
