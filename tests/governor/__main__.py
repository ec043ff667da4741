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
    print(f"{'controller':<14}{'p95':>7}{'p99':>7}{'dropped':>9}{'enhanced':>10}{'flaps/min':>11}")
    for name, create in {**CONTROLLERS, "governor": create_governor}.items():
        o = measure(create)
        print(
            f"{name:<14}{o.p95_ms:>7.0f}{o.p99_ms:>7.0f}{100 * o.dropped_share:>8.2f}%"
            f"{100 * o.enhanced_share:>9.1f}%{o.flaps_per_min:>11.2f}"
        )


if __name__ == "__main__":
    main()
