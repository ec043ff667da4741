"""`python -m tests.governor`: the table of controllers, on machines no constant was tuned on."""

from __future__ import annotations

import numpy as np

from livefuse.config import GovernorConfig
from livefuse.governor import Governor
from tests.governor.controllers import CONTROLLERS
from tests.governor.simulate import FRAME_MS, Outcome, create_profile, simulate

HELD_OUT = range(1000, 1040)


def measure(create, ring=2, seeds=HELD_OUT):
    """Return the mean outcome over the profiles of `seeds`."""
    rows = [simulate(create_profile(seed), create(), ring) for seed in seeds]
    return Outcome(*(float(value) for value in np.mean(rows, axis=0)))


def create_governor():
    """Return the governor as livefuse runs it."""
    return Governor(GovernorConfig(), FRAME_MS)


def main():
    """Print it."""
    heads = ("p95 ms", "p99 ms", "dropped", "thinned", "enhanced", "flaps/min")
    print(f"{'controller':<14}" + "".join(f"{head:>11}" for head in heads))
    for name, create in {**CONTROLLERS, "governor": create_governor}.items():
        o = measure(create)
        shares = (o.dropped_share, o.thinned_share, o.enhanced_share)
        cells = [
            f"{o.p95_ms:.0f}",
            f"{o.p99_ms:.0f}",
            *(f"{100 * share:.2f} %" for share in shares),
        ]
        print(f"{name:<14}" + "".join(f"{cell:>11}" for cell in [*cells, f"{o.flaps_per_min:.2f}"]))


if __name__ == "__main__":
    main()
