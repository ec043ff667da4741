"""Load to rung: the pipeline lightens itself when a frame's work does not fit into its time.

    ladder     down to the rung that fits, up with patience, aside for what else presses
    costs      what each stage costs, by averages, and what a rung needs of them
    sounding   when to try, on one frame, what has not run for a while

Pure: costs, queue delays and the time come in, a decision goes out; the same calls give the same
decisions.
"""

from __future__ import annotations

from livefuse.governor.costs import SPARED, get_share
from livefuse.governor.ladder import PRESSURES, Decision, Governor, GovernorStatistics

__all__ = ["PRESSURES", "SPARED", "Decision", "Governor", "GovernorStatistics", "get_share"]
