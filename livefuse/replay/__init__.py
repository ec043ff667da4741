"""A recording through the very stages of a live job, in virtual time: what was decided, and why.

The recording's packets are decoded when they came; rings, pipeline, governor, hold, sound and
encode are those of a job, their threads run one at a time (virtual/). Work takes what the cost
model says. The pipeline is loaded and warmed up before time starts, and what it does aside is done
at once, without taking time.

    intake.py   where it comes in; ingest/replay.py plays it at the times it came
    run.py      the stages around it, and the report
"""

from livefuse.replay.intake import Recorded
from livefuse.replay.run import KnownCosts, Replay

__all__ = ["KnownCosts", "Recorded", "Replay"]
