"""A seed becomes a plan: which fault, when, for how long. Pure: one seed, one plan."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

LEAD_S = 8.0
"""Calm at the start: the reference for threads, and for the line of time."""
TAIL_S = 15.0
"""Calm at the end: recovery is judged there."""
CALM_S = (6.5, 11.0)
_HURRY_S = (0.4, 1.5)
_HURRY_SHARE = 0.15


@dataclass(slots=True, frozen=True)
class Kind:
    """A kind of fault: whom it meets, how long it lasts (s), how often it strikes."""

    name: str
    group: str
    lasts_s: tuple[float, float] = (0.0, 0.0)
    times: tuple[int, int] = (1, 1)
    choices: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Fault:
    """One fault of a plan."""

    at_s: float
    kind: str
    group: str
    lasts_s: float
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def end_s(self) -> float:
        """When it is over."""
        return self.at_s + self.lasts_s


STEP = "STEP"
"""A choice that stands for every operation of the run."""

KINDS = {
    kind.name: kind
    for kind in (
        Kind("camera_stop", "camera", (0.5, 8.0)),
        Kind("camera_kill", "camera", (0.3, 5.0)),
        Kind("camera_other_size", "camera", (0.5, 2.0)),
        Kind("camera_other_sets", "camera", (0.5, 2.0)),
        Kind("server_stop", "server", (0.5, 8.0)),
        Kind("server_kill", "server", (0.3, 5.0)),
        Kind("server_refuse", "server", (1.0, 6.0)),
        Kind("sender_stop", "server", (0.5, 5.0)),
        Kind("sender_kill", "server", (0.5, 0.5)),
        Kind("step_hang", "inside", (0.3, 4.0), choices=(STEP,)),
        Kind("step_raise", "inside", (1.0, 1.0), times=(1, 45), choices=(STEP,)),
        Kind("thread_kill", "inside", (0.5, 0.5), choices=("pipeline", "encode", "decode")),
        Kind("decoder_raise", "inside", (1.0, 1.0), times=(1, 40)),
        Kind("decoder_crash", "inside", (0.5, 0.5)),
        Kind("decoder_garbage", "inside", (1.0, 1.0), times=(1, 20)),
        Kind("decoder_hang", "inside", (0.3, 4.0)),
        Kind("encoder_raise", "inside", (0.5, 0.5), times=(1, 5)),
        Kind("encoder_hang", "inside", (0.3, 4.0)),
        Kind("audio_raise", "inside", (0.5, 0.5), times=(1, 3)),
        Kind("audio_hang", "inside", (0.3, 3.0)),
        Kind("burn", "machine", (1.0, 4.0)),
        Kind("eat", "machine", (1.0, 4.0), times=(64, 256)),
        Kind("freeze", "process", (0.2, 2.0)),
    )
}


def make_plan(
    seed: int,
    seconds: float,
    operations: tuple[str, ...],
    names: tuple[str, ...] = tuple(KINDS),
    calm_s: tuple[float, float] = CALM_S,
) -> list[Fault]:
    """Return faults between `LEAD_S` and `TAIL_S` before the end, in the order of their begin.

    Kinds come from a bag that is filled anew when it is empty, so a long run meets all of them.
    Two faults never overlap; some follow at once.
    """
    chance = random.Random(seed)
    plan: list[Fault] = []
    bag: list[str] = []
    at_s = LEAD_S
    while True:
        if not bag:
            bag = sorted(names)
            chance.shuffle(bag)
        fault = _make_fault(chance, KINDS[bag.pop()], at_s, operations)
        if fault.end_s > seconds - TAIL_S:
            return plan
        plan.append(fault)
        is_hurried = chance.random() < _HURRY_SHARE
        at_s = round(fault.end_s + chance.uniform(*(_HURRY_S if is_hurried else calm_s)), 3)


def _make_fault(
    chance: random.Random, kind: Kind, at_s: float, operations: tuple[str, ...]
) -> Fault:
    details: dict[str, Any] = {}
    if kind.times != (1, 1):
        details["times"] = chance.randint(*kind.times)
    if kind.choices:
        choices = operations if kind.choices == (STEP,) else kind.choices
        details["where"] = chance.choice(choices)
    return Fault(at_s, kind.name, kind.group, round(chance.uniform(*kind.lasts_s), 3), details)
