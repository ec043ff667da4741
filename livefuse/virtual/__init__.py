"""Virtual time: the threads of a live job, one at a time, in an order that is always the same.

A `VirtualClock` runs real threads, its *actors*, but only one of them moves: the one with the
baton. It keeps the baton until it waits (on a condition, an event, a moment), lets a cost pass
(`charge`) or notifies others; then the next one in line has it. When nobody can go on, time jumps
to the earliest moment that somebody waits for. So an hour of stream takes as long as its work, and
the same actors with the same costs do the same things at the same times, whatever the machine does.

    clock = VirtualClock(TableCosts(Costs(costs_ms={"detect": 8.0})))
    clock.start("camera", lambda: feed(clock, ring))     # clock.sleep_until(ns), ring.put(...)
    clock.start("pipeline", lambda: treat(clock, ring))  # ring.take(), clock.charge("detect")
    clock.run_until_done()                               # an actor's exception comes out here

What actors share needs no lock: nobody is interrupted. A ring is given
`condition=clock.create_condition()`. Whatever waits otherwise (a file, a lock, a thread of a
library) takes real time and no virtual time, and what is decided must not depend on that.

    baton.py   the line of actors, and time
    clock.py   the same as a `livefuse.clock.Clock`
    costs.py   how long work takes: by a table, with noise, as it was measured before, or measured

The rules of the order: who becomes ready goes to the end of one line; those whose time has come
together go there in the order in which they began to wait; those who wait for an event that has
been set meanwhile go there when the baton is handed on; who has notified others lets them go first.
"""

from livefuse.virtual.baton import ActorStopped
from livefuse.virtual.clock import EPOCH_S, CostModel, VirtualClock, VirtualCondition
from livefuse.virtual.costs import (
    DEFAULT_COSTS,
    Costs,
    MeasuredCosts,
    Noise,
    Phase,
    TableCosts,
    read_costs,
)

__all__ = [
    "DEFAULT_COSTS",
    "EPOCH_S",
    "ActorStopped",
    "CostModel",
    "Costs",
    "MeasuredCosts",
    "Noise",
    "Phase",
    "TableCosts",
    "VirtualClock",
    "VirtualCondition",
    "read_costs",
]
